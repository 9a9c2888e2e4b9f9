package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/run/convert"
)

func newMergeCommand() *cobra.Command {
	var from, out string
	c := &cobra.Command{
		Use:   "merge",
		Short: "Write a checkpoint whose weights have taken in what tunes them",
		Long: `merge adds the product of each adapter of a run with model.lora to the weight of its layer, makes
weights and biases take in the scales and shifts of model.tuning.ssf, and writes a checkpoint of a
model without them that computes the same. Bottlenecks and prompts of model.tuning stay. It holds
parameters, configuration and tokenizer: it can be evaluated, embedded and trained from, and not
resumed, as the teacher, the optimiser and the queue are left out.`,
		Example: `  trainer merge --checkpoint runs/adapted --out runs/merged
  trainer eval --checkpoint runs/merged`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" || out == "" {
				return usageError{errors.New(
					"merge needs --checkpoint, the run or step folder that is tuned, and --out, the folder to write")}
			}
			path, err := convert.Merge(from, out, c.ErrOrStderr())
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), path)
			}
			return err
		},
	}
	c.Flags().StringVar(&from, "checkpoint", "", "run or step `folder` that is tuned")
	c.Flags().StringVar(&out, "out", "", "`folder` of the run to write")
	return c
}
