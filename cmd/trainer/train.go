package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
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

// loadOver reads --config, or without one the configuration of a checkpoint, with
// the overrides sets and then the user's own.
func (f *runFlags) loadOver(c *cobra.Command, ck *checkpoint.Checkpoint, sets ...string) (config.Config, error) {
	f.config.sets = append(sets, f.config.sets...)
	if f.config.file != "" {
		return f.load(c)
	}
	text, err := ck.File(runlog.ConfigFile)
	if err != nil {
		return config.Config{}, err
	}
	return config.Parse(filepath.Join(ck.Path, runlog.ConfigFile), text, f.config.overrides(c, f.extra()...))
}

func newTrainCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "train",
		Short: "Train a model, with checkpoints and exact resume",
		Long: `train runs the configuration: it prepares the run folder, trains with a progress bar,
saves checkpoints, and ends with an evaluation. Ctrl-C saves and stops; the same command
again goes on where it stopped, with the same numbers as if it had never stopped. A
second Ctrl-C stops at once.`,
		Example: `  trainer train --config configs/quickstart.toml
  trainer train --config configs/quickstart.toml --set train.batch_size=64 --out runs/small
  trainer train --config configs/flickr8k.toml --set data.root=flickr8k --dry-run`,
		Args: cobra.NoArgs,
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
fine-tuned at another image size: its position table is resampled.`,
		Example: `  trainer finetune --checkpoint runs/flickr8k --set data.root=flickr8k --set train.max_steps=200 --out runs/tuned
  trainer finetune --checkpoint runs/a --config mine.toml --set model.image.size=160`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" {
				return usageError{errors.New("finetune needs --checkpoint: the run or step folder to start from")}
			}
			ck, err := checkpoint.Load(from)
			if err != nil {
				return err
			}
			defer ck.Close()
			cfg, err := f.loadOver(c, ck, "objective.mlm.weight=0", "objective.itc.positives='id'",
				fmt.Sprintf("init.checkpoint=%q", from), "run.name='finetune'", "run.out=''", "queue.start_steps=0")
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
func trainRun(c *cobra.Command, f *runFlags, cfg config.Config) (err error) {
	ctx, note := c.Context(), f.output.note(c)
	dir, from, err := placeRun(&cfg, f.resume, note)
	if err != nil {
		return err
	}
	if from != nil {
		defer from.Close()
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
	stream, err := openStream(cfg, cfg.Objective.ITC.Positives == "id")
	if err != nil {
		return err
	}
	session, err := train.NewSession(cfg, engine, stream, tok)
	if err != nil {
		return err
	}
	defer session.Close()
	start := 0
	switch {
	case from != nil:
		if start, err = session.Restore(from); err != nil {
			return fmt.Errorf("%w\n(start anew with --resume never)", err)
		}
		fmt.Fprintf(note, "going on from step %d of %s\n", start, from.Path)
	case cfg.Init.Checkpoint != "":
		if err := initFrom(session, cfg.Init.Checkpoint, note); err != nil {
			return err
		}
	}
	if f.dryRun {
		return dryRun(ctx, c, f, cfg, session, engine)
	}
	r := &trainSession{cfg: cfg, dir: dir, engine: engine, tok: tok, session: session, start: start, quiet: f.output.quiet, stderr: c.ErrOrStderr()}
	return r.run(ctx, c.OutOrStdout(), f.output.json)
}

// placeRun decides on the run folder and the checkpoint to go on from.
func placeRun(cfg *config.Config, resume string, note io.Writer) (dir string, from *checkpoint.Checkpoint, err error) {
	dir = cfg.Run.Out
	if dir == "" {
		dir = filepath.Join("runs", cfg.Run.Name)
	}
	switch resume {
	case "auto":
		from, err = checkpoint.Load(dir)
		if errors.Is(err, checkpoint.ErrNone) {
			from, err = nil, nil
		}
	case "never":
		base := dir
		for n := 2; hasRun(dir); n++ { // an earlier run is never overwritten
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if dir != base {
			fmt.Fprintf(note, "%s holds an earlier run: this one goes to %s\n", base, dir)
		}
	default:
		from, err = checkpoint.Load(resume)
	}
	if err != nil {
		return "", nil, err
	}
	if from != nil && from.Notice != "" {
		fmt.Fprintln(note, from.Notice)
	}
	cfg.Run.Out = dir
	return dir, from, nil
}

func hasRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runlog.CheckpointsDir))
	return err == nil
}

// newEngine starts the kernels that a configuration asks for.
func newEngine(cfg config.Config) (*kernel.Engine, error) {
	return kernel.New(kernel.Options{Backend: cfg.Compute.Backend, Threads: cfg.Compute.Threads})
}

// initFrom copies the parameters of a checkpoint into a fresh model.
func initFrom(s *train.Session, path string, note io.Writer) error {
	ck, err := checkpoint.Load(path)
	if err != nil {
		return err
	}
	defer ck.Close()
	r, err := train.InitModel(s.Model(), ck)
	if err != nil {
		return err
	}
	fmt.Fprintf(note, "parameters from %s: %s\n", ck.Path, r)
	return nil
}

// trainSession is a training run under way.
type trainSession struct {
	cfg     config.Config
	dir     string
	engine  *kernel.Engine
	tok     *tokenizer.Tokenizer
	session *train.Session
	store   *checkpoint.Store
	start   int
	quiet   bool
	stderr  io.Writer

	progress *train.Progress
	best     *float64 // newest evaluation, for keep_best
	bestStep int
}

// run trains, evaluates at the end and prints the result.
func (r *trainSession) run(ctx context.Context, stdout io.Writer, asJSON bool) (err error) {
	span, cfg := r.session.Span(), r.cfg
	text, err := cfg.Encode()
	if err != nil {
		return err
	}
	if err := runlog.Prepare(r.dir, text, runlog.CollectEnvironment(r.engine.Threads(), r.engine.Describe(), os.Args)); err != nil {
		return err
	}
	t := cfg.Train
	r.store, err = checkpoint.NewStore(filepath.Join(r.dir, runlog.CheckpointsDir), checkpoint.Retention{Last: t.KeepLast, Best: t.KeepBest, EverySteps: t.KeepEverySteps})
	if err != nil {
		return err
	}
	resumed := -1
	if r.start > 0 {
		resumed = r.start
	}
	metrics, err := runlog.OpenMetrics(filepath.Join(r.dir, runlog.MetricsFile), resumed)
	if err != nil {
		return err
	}
	events, err := runlog.NewEvents(r.dir, max(resumed, 0), time.Now)
	if err != nil {
		return errors.Join(err, metrics.Close())
	}
	logger := runlog.Multi(metrics, events)
	defer func() { err = errors.Join(err, logger.Close()) }()

	r.progress = train.NewProgress(train.ProgressConfig{Out: r.stderr, Terminal: isTerminal(r.stderr), Quiet: r.quiet, Start: r.start, Total: span.Total, Limit: span.Limit})
	r.announce()
	hooks := []train.Hook{
		train.Metrics(span.PerEpoch),
		train.Checkpoints(train.SaveConfig{EverySteps: t.SaveEverySteps, EveryMinutes: t.SaveEveryMinutes, Save: r.save}),
		train.Evaluations(t.EvalEverySteps, r.validate),
		train.Logs(t.LogEverySteps, logger),
		r.progress.Hook(),
	}
	_, err = train.Run(ctx, train.Config{Start: r.start, Total: span.Total, Limit: span.Limit, OnNaN: t.OnNaN, Rollback: r.rollback}, r.session, hooks...)
	if err != nil {
		return err
	}
	return r.finish(ctx, stdout, asJSON)
}

// announce prints what the run is before its first step.
func (r *trainSession) announce() {
	p := r.session.Model().Params()
	b := r.cfg.Train.BatchSize
	r.progress.Printf("%s: %d parameters, %s, batch %d, run folder %s", r.cfg.Run.Name, p.Count(), r.engine.Describe(), b, r.dir)
	r.progress.Printf("%s", train.ChanceLoss(b))
	for _, a := range r.cfg.Advice() {
		r.progress.Printf("note: %s", a)
	}
}

func (r *trainSession) save(e *train.Event) error {
	snap, err := r.session.Snapshot(e.Step)
	if err != nil {
		return err
	}
	if r.bestStep == e.Step {
		snap.Metric = r.best
	}
	return r.store.Save(e.Step, snap)
}

// validate evaluates the configured split during training.
func (r *trainSession) validate(ctx context.Context, step int) (map[string]float64, error) {
	scores, err := r.evaluate(ctx, "val")
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for k, v := range scores.Final().Map() {
		values["eval/retrieval/"+k] = v
	}
	m := scores.Final().RMean()
	r.best, r.bestStep = &m, step
	f := scores.Final()
	r.progress.Printf("step %d  val: image to text R@1 %.1f R@10 %.1f, text to image R@1 %.1f R@10 %.1f, mean %.1f", step, f.I2T.R1, f.I2T.R10, f.T2I.R1, f.T2I.R10, m)
	return values, nil
}

// rollback goes back to the last checkpoint but keeps the place in the data.
func (r *trainSession) rollback(_ context.Context, bad, attempt int) (int, error) {
	ck, err := checkpoint.Load(r.dir)
	if err != nil {
		return 0, err
	}
	defer ck.Close()
	position := r.session.Loader().Position()
	step, err := r.session.Restore(ck)
	if err != nil {
		return 0, err
	}
	r.session.Loader().Start(position)
	r.progress.Printf("step %d was not finite: back to step %d (attempt %d)", bad, step, attempt)
	return step, nil
}

func (r *trainSession) evaluate(ctx context.Context, split string) (tasks.Scores, error) {
	return evaluate(ctx, r.cfg, r.engine, r.session.Model(), r.tok, split, nil)
}

// finish evaluates the trained model and prints the table and the run folder.
func (r *trainSession) finish(ctx context.Context, stdout io.Writer, asJSON bool) error {
	bar := newPhaseBar(r.stderr, r.quiet)
	scores, err := evaluate(ctx, r.cfg, r.engine, r.session.Model(), r.tok, r.cfg.Eval.Split, bar.show)
	bar.done()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(stdout, evalReport(scores, r.cfg.Eval.Split, r.dir))
	}
	fmt.Fprintf(stdout, "\nretrieval on %s: %d images, %d texts\n\n%s\nrun folder: %s\n", r.cfg.Eval.Split, scores.Images, scores.Texts, scores.Table(), r.dir)
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && train.IsTerminal(f)
}
