package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/convert"
)

func newAverageCommand() *cobra.Command {
	var out outputFlags
	var path string
	var o convert.AverageOptions
	c := &cobra.Command{
		Use:   "average",
		Short: "Write the mean of several checkpoints of a run",
		Long: `average writes the mean of the parameters of several checkpoints of a run, and of their
momentum encoders where all have one, as the checkpoint of a new run folder: of the --last so
many, or of the --best so many by the metric of their evaluations. The run must have kept
them (train.keep_last, train.keep_best). Of a run with adapters (model.lora) or scales and shifts
(model.tuning.ssf) it is the mean of the weights that have taken them in, and has none.

The mean is evaluated, embedded, searched and exported as any checkpoint. It has no optimiser,
so training does not go on from it, and may start from it with init.checkpoint.`,
		Example: `  trainer average --checkpoint runs/flickr8k --last 2 --out runs/flickr8k-mean
  trainer average --checkpoint runs/flickr8k --best 3 --out runs/flickr8k-best    # of a run with train.keep_best = 3
  trainer eval --checkpoint runs/flickr8k-mean`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{errors.New("average needs --checkpoint: a run folder")}
			}
			if o.Out == "" {
				return usageError{errors.New("average needs --out: the folder of the new run")}
			}
			o.Log = out.note(c)
			a, err := convert.Average(path, o)
			if err != nil {
				return err
			}
			if out.json {
				return printJSON(c.OutOrStdout(), a)
			}
			steps := "the steps " + strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Steps), " ", ", "), "[]")
			if len(a.Steps) == 1 {
				steps = fmt.Sprintf("step %d alone", a.Steps[0])
			}
			fmt.Fprintf(c.OutOrStdout(), "mean of %s: %s of %s numbers in %s\n", steps,
				words.Count(a.Tensors, "tensor"), words.Thousands(a.Numbers), a.Path)
			return nil
		},
	}
	out.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "run `folder`")
	c.Flags().IntVar(&o.Last, "last", 0, "mean of the newest `K` checkpoints")
	c.Flags().IntVar(&o.Best, "best", 0, "mean of the `K` checkpoints with the best evaluations")
	c.Flags().StringVar(&o.Out, "out", "", "`folder` of the new run")
	return c
}
