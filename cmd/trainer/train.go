package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// runFlags are the flags of a training run.
type runFlags struct {
	config   configFlags
	output   outputFlags
	resume   string
	maxSteps int
	dryRun   bool
}

func (f *runFlags) add(c *cobra.Command) {
	f.config.add(c)
	f.config.addOut(c)
	f.output.add(c)
	c.Flags().StringVar(&f.resume, "resume", "auto", "auto: go on with the run folder's latest checkpoint if it has one; never: start anew; `PATH`: go on from that checkpoint")
	c.Flags().IntVar(&f.maxSteps, "max-steps", 0, "length of the run in steps, instead of what the configuration says")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "build the model, print shapes, parameters, memory and the time of a step, and exit")
}

// extra returns the overrides that the flags of a run stand for.
func (f *runFlags) extra() []string {
	if f.maxSteps == 0 {
		return nil
	}
	return []string{fmt.Sprintf("train.max_steps=%d", f.maxSteps), "train.max_epochs=0", "train.max_samples=0", "train.max_minutes=0"}
}

// load reads --config with the flags' overrides.
func (f *runFlags) load(c *cobra.Command) (config.Config, error) {
	return f.config.load(c, f.extra()...)
}

// loadOver is load, or without --config the configuration of a checkpoint, with the
// overrides sets and then the user's own.
func (f *runFlags) loadOver(c *cobra.Command, ck *checkpoint.Checkpoint, sets ...string) (config.Config, error) {
	f.config.sets = append(sets, f.config.sets...)
	return run.ConfigOver(ck, f.config.file, f.config.overrides(c, f.extra()...))
}

// open opens the checkpoint at path for inference.
func (f *runFlags) open(c *cobra.Command, path string) (*run.Trained, error) {
	return run.Open(path, run.OpenOptions{File: f.config.file, Set: f.config.overrides(c, f.extra()...), Log: f.output.note(c)})
}

func newTrainCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "train",
		Short: "Train a model, with checkpoints and exact resume",
		Long: `train runs the configuration: it prepares the run folder, trains with a progress bar,
saves checkpoints, and ends with an evaluation. Ctrl-C saves and stops; the same command
again goes on where it stopped, with the same numbers as if it had never stopped. A
second Ctrl-C stops at once.

A run may go on with changed settings, which are listed: a longer --max-steps (the
learning rate then follows the longer schedule), another batch size, learning rate or
data. The architecture, the queue's size, the seed and init.checkpoint cannot change. A
run that has reached its end is only evaluated.`,
		Example: `  trainer train --config configs/quickstart.toml
  trainer train --config configs/quickstart.toml --set train.batch_size=64 --out runs/small
  trainer train --config configs/flickr8k.toml --set data.root=flickr8k --dry-run`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.load(c)
			if err != nil {
				return err
			}
			return trainRun(c, &f, cfg)
		},
	}
	f.add(c)
	return c
}

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
always the checkpoint's.`,
		Example: `  trainer finetune --checkpoint runs/flickr8k --set data.root=flickr8k --set train.max_steps=200 --out runs/tuned
  trainer finetune --checkpoint runs/a --config mine.toml --set model.image.size=160`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usageError{errors.New("finetune needs --checkpoint: the run or step folder to start from")}
			}
			ck, err := checkpoint.Load(from)
			if err != nil {
				return err
			}
			defer ck.Close()
			sets := []string{"objective.mlm.weight=0", "objective.itc.positives=id", "init.checkpoint=" + strconv.Quote(from)}
			if f.config.file == "" { // what belongs to the run that the configuration is from
				sets = append(sets, "run.name=finetune", "run.out=''", "queue.start_steps=0")
			}
			cfg, err := f.loadOver(c, ck, sets...)
			if err != nil {
				return err
			}
			return trainRun(c, &f, cfg)
		},
	}
	f.add(c)
	c.Flags().StringVar(&from, "checkpoint", "", "run or step `folder` to start from")
	return c
}

// trainRun is one session of a training run.
func trainRun(c *cobra.Command, f *runFlags, cfg config.Config) error {
	o := run.Options{Resume: f.resume, Log: f.output.note(c), Reporter: newReporter(c.ErrOrStderr(), f.output.quiet)}
	w := c.OutOrStdout()
	if f.dryRun {
		p, err := run.DryRun(c.Context(), cfg, o)
		switch {
		case err != nil:
			return err
		case f.output.json:
			return printJSON(w, p)
		}
		printPlan(w, p)
		return nil
	}
	r, err := run.New(cfg, o)
	if err != nil {
		return err
	}
	defer r.Close()
	result, err := r.Train(c.Context())
	switch {
	case err != nil:
		return err
	case result.Scores == nil && f.output.json:
		return printJSON(w, map[string]string{"path": result.Folder})
	case result.Scores == nil:
		fmt.Fprintf(w, "run folder: %s\n", result.Folder)
	case f.output.json:
		return printJSON(w, result.Scores.JSON(result.Split, result.Folder))
	default:
		s := result.Scores
		fmt.Fprintf(w, "\n%s on %s: %s\n\n%s\nrun folder: %s\n", s.Task(), result.Split, s.Size(), s.Table(), result.Folder)
	}
	return nil
}
