package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/run"
)

func newFinetuneCommand() *cobra.Command {
	var f runFlags
	var from, task string
	c := &cobra.Command{
		Use:   "finetune",
		Short: "Fine-tune a trained model for retrieval or a downstream task",
		Long: `finetune starts from the parameters of a checkpoint and trains for retrieval as ALBEF
does: contrast and matching without masked language modelling, every (image, caption)
pair a sample, and all captions of one image positives of each other.

With --task it trains for another task, by a loss and data of its own (data.kind,
data.examples): entailment tells whether a picture contradicts a sentence, entails it, or
neither; nlvr whether a statement about two pictures is true; vqa answers questions and
captioning writes captions, by a decoder; grounding trains as retrieval does, on pictures with
expressions that name an object; classification tells the class of a picture, by the image
tower of the checkpoint alone. docs/tasks.md has the files that are read and the commands.

Without --config the checkpoint's own configuration is the base. A model may be
fine-tuned at another image size: its position table is resampled. The vocabulary is
always the checkpoint's. Adapters (model.lora), scales and shifts (model.tuning.ssf) go on where they
are the same, and are merged into their weights elsewhere.`,
		Example: `  trainer finetune --checkpoint runs/flickr8k --set data.root=flickr8k --set train.max_steps=200 --out runs/tuned
  trainer finetune --checkpoint runs/vqa --config configs/entailment.toml --out runs/entailment
  trainer finetune --checkpoint runs/albef --task entailment --set data.root=/data \
      --set data.examples.train_files=snli_ve_train.jsonl --set data.examples.image_root=flickr30k-images
  trainer finetune --checkpoint runs/quickstart --config configs/classes.toml
  trainer finetune --checkpoint runs/a --config mine.toml --set model.image.size=160`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usageError{errors.New("finetune needs --checkpoint: the run or step folder to start from")}
			}
			cfg, err := run.FinetuneConfig(from, task, f.opening(c))
			if err != nil {
				return err
			}
			return trainRun(c, &f, cfg)
		},
	}
	f.add(c)
	overCheckpoint(c)
	c.Flags().StringVar(&from, "checkpoint", "", "run or step `folder` to start from")
	c.Flags().StringVar(&task, "task", "", "what to fine-tune for: "+strings.Join(run.FinetuneTasks(),
		", ")+"; default: that of --config, else retrieval")
	return c
}
