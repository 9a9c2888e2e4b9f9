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
		Use:   "finetune RUN",
		Short: "Fine-tune a trained model for retrieval or a downstream task",
		Long: `finetune starts from the parameters of a checkpoint and trains for retrieval as ALBEF does:
contrast and matching without masked language modelling, one sample per (image, caption) pair,
and all captions of an image as positives of each other.

--task trains for another task, with a loss and data of its own (data.kind, data.examples):

  entailment      does a picture entail a sentence, contradict it, or neither?
  nlvr            is a statement about two pictures true?
  vqa             answers to questions, by a decoder
  captioning      captions, by a decoder
  grounding       retrieval on pictures with expressions that name an object
  classification  the class of a picture, by the image tower alone

docs/tasks.md has the file formats and commands.

Without --config the checkpoint's own configuration is the base. The image size may change: the
position table is resampled. The vocabulary is always the checkpoint's. Adapters (model.lora),
scales and shifts (model.tuning.ssf) are kept where the new run has the same, and merged into
the weights otherwise.`,
		Example: `  trainer finetune runs/flickr8k --set data.root=flickr8k --set train.max_steps=200 --out runs/tuned
  trainer finetune runs/vqa --config configs/entailment.toml --out runs/entailment
  trainer finetune runs/albef --task entailment --set data.root=/data \
      --set data.examples.train_files=snli_ve_train.jsonl --set data.examples.image_root=flickr30k-images
  trainer finetune runs/scenes --config configs/classes.toml
  trainer finetune runs/a --config mine.toml --set model.image.size=160`,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usageError{errors.New("finetune needs RUN: the run or step folder to start from")}
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
	takesRun(c, &from)
	c.Flags().StringVar(&task, "task", "", "what to fine-tune for: "+strings.Join(run.FinetuneTasks(),
		", ")+"; default: that of --config, else retrieval")
	return c
}
