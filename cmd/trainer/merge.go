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
		Use:   "merge RUN",
		Short: "Merge adapters into the weights of a run",
		Long: `merge writes a checkpoint without adapters that computes the same: LoRA products (model.lora), scales
and shifts (model.tuning.ssf) are merged into weights and biases. Bottlenecks and prompts of
model.tuning stay.

The result holds parameters, configuration and tokenizer. It can be evaluated, embedded and trained
from, but not resumed, because teacher, optimiser and queue are not in it.`,
		Example: `  trainer merge runs/adapted --out runs/merged
  trainer eval runs/merged`,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" || out == "" {
				return usageError{errors.New(
					"merge needs RUN, the run or step folder with adapters, and --out, the folder to write")}
			}
			path, err := convert.Merge(from, out, c.ErrOrStderr())
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), path)
			}
			return err
		},
	}
	takesRun(c, &from)
	c.Flags().StringVar(&out, "out", "", "`folder` of the run to write")
	return c
}
