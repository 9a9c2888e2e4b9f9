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
		Use:   "average RUN",
		Short: "Write the mean of several checkpoints of a run",
		Long: `average writes the mean of several checkpoints as a new run folder: the --last K, or the --best K
by their evaluations. Momentum encoders are averaged too if all checkpoints have one. The run
must have kept the checkpoints (train.keep_last, train.keep_best). Adapters (model.lora), scales
and shifts (model.tuning.ssf) are merged into the weights first.

The result can be evaluated, embedded, searched and exported. It has no optimiser state: training
cannot resume from it, but can start from it with init.checkpoint.`,
		Example: `  trainer average runs/flickr8k --last 2 --out runs/flickr8k-mean
  trainer average runs/flickr8k --best 3 --out runs/flickr8k-best    # of a run with train.keep_best = 3
  trainer eval runs/flickr8k-mean`,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{errors.New("average needs RUN: a run folder")}
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
	takesRun(c, &path)
	c.Flags().IntVar(&o.Last, "last", 0, "mean of the newest `K` checkpoints")
	c.Flags().IntVar(&o.Best, "best", 0, "mean of the `K` checkpoints with the best evaluations")
	c.Flags().StringVar(&o.Out, "out", "", "`folder` of the new run")
	return c
}
