package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/run"
)

func newFinetuneCommand() *cobra.Command {
	var f runFlags
	var from string
	c := &cobra.Command{
		Use:   "finetune",
		Short: "Fine-tune a trained model for image-text retrieval",
		Long: `finetune starts from the parameters of a checkpoint and trains for retrieval as ALBEF
does: contrast and matching without masked language modelling, every (image, caption)
pair a sample, and all captions of one image positives of each other.

Without --config the checkpoint's own configuration is the base. A model may be
fine-tuned at another image size: its position table is resampled. The vocabulary is
always the checkpoint's. Adapters (model.lora), scales and shifts (model.tuning.ssf) go on where they
are the same, and are merged into their weights elsewhere.`,
		Example: `  trainer finetune --checkpoint runs/flickr8k --set data.root=flickr8k --set train.max_steps=200 --out runs/tuned
  trainer finetune --checkpoint runs/a --config mine.toml --set model.image.size=160`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usageError{errors.New("finetune needs --checkpoint: the run or step folder to start from")}
			}
			cfg, err := run.FinetuneConfig(from, f.opening(c))
			if err != nil {
				return err
			}
			return trainRun(c, &f, cfg)
		},
	}
	f.add(c)
	overCheckpoint(c)
	c.Flags().StringVar(&from, "checkpoint", "", "run or step `folder` to start from")
	return c
}
