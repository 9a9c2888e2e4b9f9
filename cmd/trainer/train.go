package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// runFlags are the flags of a training run.
type runFlags struct {
	config   configFlags
	output   outputFlags
	resume   string
	maxSteps int
	dryRun   bool
	several  bool // one of several runs of a process
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

// loadOver reads --config, or without one the configuration of a checkpoint, with
// the overrides sets and then the user's own.
func (f *runFlags) loadOver(c *cobra.Command, ck *checkpoint.Checkpoint, sets ...string) (config.Config, error) {
	f.config.sets = append(sets, f.config.sets...)
	if f.config.file != "" {
		return f.load(c)
	}
	cfg, notices, err := train.OpenConfig(ck, f.config.overrides(c, f.extra()...)...)
	tell(f.output.note(c), notices)
	return cfg, err
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
			if err := cfg.Validate(); err != nil { // of a stored one not everything is
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
	if err := towersOnly(cfg); err != nil {
		return err
	}
	ctx, note := c.Context(), f.output.note(c)
	dir, from, err := placeRun(&cfg, f.resume, note)
	if err != nil {
		return err
	}
	if from != nil {
		defer from.Close()
		if err := checkResume(from, cfg, note); err != nil {
			return err
		}
	}
	engine, err := newEngine(cfg)
	if err != nil {
		return err
	}
	defer engine.Close()
	tok, err := openTokenizer(cfg, from)
	if err != nil {
		return err
	}
	set, err := openFinalSet(cfg, note)
	if err != nil {
		return err
	}
	stream, err := openStream(cfg, tok)
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := writable(dir); err != nil {
			return err
		}
		unlock, err := lockFolder(dir)
		if err != nil {
			return err
		}
		defer unlock() // the end of the process does so too
	}
	session, err := train.NewSession(cfg, engine, stream, tok)
	if err != nil {
		return err
	}
	defer session.Close()
	var state train.State
	switch {
	case from != nil:
		if state, err = session.Restore(from); err != nil {
			return fmt.Errorf("%w\n(start anew with --resume never)", err)
		}
		fmt.Fprintf(note, "going on from step %d of %s\n", state.Step, from.Path)
		if len(state.Unread) > 0 {
			fmt.Fprintf(note, "this run has no use for these parts of the checkpoint, and its own checkpoints will not hold them: %s\n", strings.Join(state.Unread, ", "))
		}
	case cfg.Init.Checkpoint != "":
		if err := initFrom(session, cfg, note); err != nil {
			return err
		}
	}
	if f.dryRun {
		return dryRun(ctx, c, f, cfg, session, engine)
	}
	r := &trainSession{
		cfg: cfg, dir: dir, engine: engine, tok: tok, set: set, session: session, state: state,
		quiet: f.output.quiet, stderr: c.ErrOrStderr(), several: f.several,
	}
	if from != nil {
		r.from = from.Path
	}
	return r.run(ctx, c.OutOrStdout(), f.output.json)
}

// towersOnly refuses systems whose data is no images and captions.
func towersOnly(cfg config.Config) error {
	if !cfg.Model.Stored() {
		return nil
	}
	return config.Errors{{Path: "model.system", Value: cfg.Model.System, Msg: "is trained on stored features, which this command does not read",
		Hint: "use package model in a program of your own, as ExampleHeads in model/heads_example_test.go does; trainer bench measures its step"}}
}

// newEngine starts the kernels that a configuration asks for, and warns of libraries that
// were passed over, once in the life of the process.
func newEngine(cfg config.Config) (*kernel.Engine, error) {
	e, err := kernel.New(kernel.Options{Backend: cfg.Compute.Backend, Threads: cfg.Compute.Threads, Precision: cfg.Compute.Precision})
	if err != nil {
		return nil, err
	}
	for _, w := range e.Warnings() {
		if _, again := warned.LoadOrStore(w, true); !again {
			fmt.Fprintln(os.Stderr, "warning:", w)
		}
	}
	return e, nil
}

// warned holds the warnings that were given.
var warned sync.Map

// initFrom copies the parameters of init.checkpoint into a fresh model.
func initFrom(s *train.Session, cfg config.Config, note io.Writer) error {
	ck, err := checkpoint.Load(cfg.Init.Checkpoint)
	if err != nil {
		return fmt.Errorf("init.checkpoint: %w", err)
	}
	defer ck.Close()
	if err := sameKeys(ck, cfg, config.FixedMeaning); err != nil {
		return err
	}
	r, err := train.InitModel(s.Model(), ck)
	if err != nil {
		return err
	}
	fmt.Fprintf(note, "parameters from %s: %s\n", ck.Path, r)
	return nil
}
