package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/train/schedule"
)

// trainSession is a training run under way.
type trainSession struct {
	cfg     config.Config
	dir     string
	engine  *kernel.Engine
	tok     *tokenizer.Tokenizer
	set     *data.Eval // nil: nothing to evaluate on
	session *train.Session
	store   *checkpoint.Store
	state   train.State // of the checkpoint that the run goes on from
	from    string      // its folder; empty for a new run
	quiet   bool
	several bool // one of several runs of a process: the time since its start says nothing
	stderr  io.Writer

	progress  *train.Progress
	scores    outcome // the newest evaluation, or nil
	scoreStep int
	bad       uint64 // bad samples told
}

// run trains, evaluates at the end and prints the result.
func (r *trainSession) run(ctx context.Context, stdout io.Writer, asJSON bool) error {
	span := r.session.Span()
	if span.Total > 0 && r.state.Step > span.Total {
		return fmt.Errorf("the checkpoint is at step %d of a run of %d: raise train.max_steps, or start a new run with --resume never", r.state.Step, span.Total)
	}
	elapsed := time.Duration(r.state.Elapsed * float64(time.Second))
	finished := span.Total > 0 && r.state.Step == span.Total || span.Limit > 0 && elapsed >= span.Limit
	r.progress = train.NewProgress(train.ProgressConfig{Out: r.stderr, Terminal: isTerminal(r.stderr), Quiet: r.quiet, Start: r.state.Step, Total: span.Total, Limit: span.Limit})

	t := r.cfg.Train
	var err error
	r.store, err = checkpoint.NewStore(filepath.Join(r.dir, runlog.CheckpointsDir), checkpoint.Retention{Last: t.KeepLast, Best: t.KeepBest, EverySteps: t.KeepEverySteps})
	if err != nil {
		return err
	}
	if !finished {
		text, err := r.cfg.Encode()
		if err != nil {
			return err
		}
		if err := runlog.Prepare(r.dir, text, runlog.CollectEnvironment(r.engine.Threads(), r.engine.Describe(), os.Args)); err != nil {
			return err
		}
	}
	r.announce(finished)
	c := train.Config{Start: r.state.Step, Total: span.Total, Limit: span.Limit, Elapsed: elapsed, OnNaN: t.OnNaN, Rollback: r.rollback}
	if err := r.train(ctx, c, finished); err != nil {
		return err
	}
	return r.finish(ctx, stdout, asJSON)
}

// train completes the log of the steps done before and makes those that are left.
func (r *trainSession) train(ctx context.Context, c train.Config, finished bool) (err error) {
	span, t := r.session.Span(), r.cfg.Train
	due := r.evalEvery() > 0 && (finished || schedule.Due(r.state.Step, r.evalEvery(), span.Total))
	keep, missing := r.missingRow(due)
	if finished && missing == nil {
		return nil
	}
	metrics, err := runlog.OpenMetrics(filepath.Join(r.dir, runlog.MetricsFile), keep)
	if err != nil {
		return err
	}
	events, err := runlog.NewEvents(r.dir, max(keep, 0), time.Now)
	if err != nil {
		return errors.Join(err, metrics.Close())
	}
	logger := runlog.Multi(metrics, events)
	defer func() { err = errors.Join(err, logger.Close()) }()
	if missing != nil {
		if due {
			values, err := r.validate(ctx, r.state.Step)
			if err != nil {
				return err
			}
			maps.Copy(missing, values)
		}
		if err := logger.Log(r.state.Step, missing); err != nil {
			return err
		}
	}
	_, err = train.Run(ctx, c, r.session,
		train.Metrics(span.PerEpoch),
		train.Checkpoints(train.SaveConfig{EverySteps: t.SaveEverySteps, EveryMinutes: t.SaveEveryMinutes, Save: r.save}),
		train.Evaluations(r.evalEvery(), r.validate),
		train.Logs(t.LogEverySteps, logger),
		r.progress.Hook(), r.startHook(),
		train.Hook{Name: "bad samples", Stage: train.StageLog, After: r.tellBad})
	return err
}

// startHook tells once how long it took from the start of the process to the end of
// the first step.
func (r *trainSession) startHook() train.Hook {
	told := r.several
	return train.Hook{Name: "start", Stage: train.StageLog, After: func(context.Context, *train.Event) error {
		if !told {
			told = true
			r.progress.Printf("start to the end of the first step: %.2f s", sinceStart().Seconds())
		}
		return nil
	}}
}

// evalEvery returns the steps between evaluations: 0 with nothing to evaluate on, a
// number that no run reaches where only the end is evaluated.
func (r *trainSession) evalEvery() int {
	switch {
	case r.set == nil:
		return 0
	case r.cfg.Train.EvalEverySteps == 0:
		return math.MaxInt
	}
	return r.cfg.Train.EvalEverySteps
}

// missingRow compares metrics.jsonl with the step that the run goes on from. A
// process that was killed between saving and logging lacks the step's row, one that
// was interrupted its evaluation, and one that was interrupted between two rows has
// a row too many. It returns the last step whose row stays and the numbers of the
// row to write; evaluated says whether the row has an evaluation.
func (r *trainSession) missingRow(evaluated bool) (keep int, row map[string]float64) {
	step := r.state.Step
	if step == 0 {
		return -1, nil
	}
	rows, err := runlog.ReadMetrics(filepath.Join(r.dir, runlog.MetricsFile))
	if err != nil { // there is none, or nothing that can be completed
		return step, nil
	}
	due := evaluated || step == 1 || r.state.Values["skipped"] != 0 || schedule.Due(step, r.cfg.Train.LogEverySteps, r.session.Span().Total)
	has, hasEval := false, false
	for _, row := range rows {
		if row.Step == step {
			has = true
			for k := range row.Values {
				hasEval = hasEval || strings.HasPrefix(k, "eval/")
			}
		}
	}
	switch {
	case hasEval, has && due && !evaluated:
		return step, nil
	case due:
		row = maps.Clone(r.state.Values)
		if row == nil {
			row = map[string]float64{}
		}
		return step - 1, row
	}
	return step - 1, nil
}

// announce prints what the run is before its first step.
func (r *trainSession) announce(finished bool) {
	p := r.session.Model().Params()
	b := r.cfg.Train.BatchSize
	r.progress.Printf("%s: %d parameters, %s, batch %d, run folder %s", r.cfg.Run.Name, p.Count(), r.engine.Describe(), b, r.dir)
	if finished {
		r.progress.Printf("the run is finished at step %d: it is only evaluated; train on with a larger train.max_steps, or anew with --resume never", r.state.Step)
		return
	}
	if !r.cfg.Model.ImagesOnly() {
		r.progress.Printf("%s", train.ChanceLoss(b))
	}
	for _, a := range r.cfg.Advice() {
		r.progress.Printf("note: %s", a)
	}
}

func (r *trainSession) save(e *train.Event) error {
	snap, err := r.session.Snapshot(e)
	if err != nil {
		return err
	}
	if r.scores != nil && r.scoreStep == e.Step {
		m := r.scores.metric()
		snap.Metric = &m
	}
	if err := r.store.Save(e.Step, snap); err != nil {
		return err
	}
	r.prune()
	return nil
}

// prune removes old checkpoints. One that cannot be removed is no reason to stop.
func (r *trainSession) prune() {
	if _, err := r.store.Prune(); err != nil {
		r.progress.Printf("%v", err)
	}
}

// validate evaluates eval.split during training.
func (r *trainSession) validate(ctx context.Context, step int) (map[string]float64, error) {
	if err := r.evaluate(ctx, step); err != nil {
		return nil, err
	}
	r.progress.Printf("step %d  %s: %s", step, r.cfg.Eval.Split, r.scores.line())
	err := r.store.SetMetric(step, r.scores.metric())
	switch {
	case err == nil:
		r.prune()
	case !errors.Is(err, fs.ErrNotExist): // no checkpoint was saved at this step
		return nil, err
	}
	return logged(r.scores), nil
}

func (r *trainSession) evaluate(ctx context.Context, step int) error {
	bar := newPhaseBar(r.stderr, r.quiet)
	defer bar.done()
	scores, err := evaluate(ctx, defaultTask(r.cfg), r.cfg, r.engine, r.session.Model(), r.tok, r.set, bar.show)
	if err == nil {
		r.scores, r.scoreStep = scores, step
	}
	return err
}

// rollback goes back to the newest checkpoint but keeps the place in the data.
func (r *trainSession) rollback(_ context.Context, bad, attempt int) (int, error) {
	ck, err := checkpoint.Load(r.dir)
	if errors.Is(err, checkpoint.ErrNone) && r.from != "" {
		ck, err = checkpoint.Load(r.from)
	}
	if err != nil {
		return 0, err
	}
	defer ck.Close()
	state, err := r.session.Rollback(ck)
	if err != nil {
		return 0, err
	}
	r.progress.Printf("step %d was not finite: back to step %d (attempt %d)", bad+1, state.Step, attempt)
	return state.Step, nil
}

// tellBad reports bad samples as they appear, the first few with their reason.
func (r *trainSession) tellBad(_ context.Context, e *train.Event) error {
	bad, read, examples := r.session.Loader().Bad()
	for n := r.bad; n < min(bad, uint64(len(examples)), 5); n++ {
		r.progress.Printf("bad sample, skipped: %v", examples[n].Err)
	}
	r.bad = bad
	if bad > 0 && (e.Last || e.Interrupted) {
		r.progress.Printf("%d of %d samples read were bad and skipped (data.max_bad_share = %g; trainer data check lists what is wrong)", bad, read, r.cfg.Data.MaxBadShare)
	}
	return nil
}

// finish evaluates the trained model, unless that was just done, and prints the
// table and the run folder.
func (r *trainSession) finish(ctx context.Context, stdout io.Writer, asJSON bool) error {
	if r.set != nil && r.scores == nil { // training ends with an evaluation
		if err := r.evaluate(ctx, r.state.Step); err != nil {
			return err
		}
	}
	r.writeReport(ctx)
	switch {
	case r.scores == nil && asJSON:
		return printJSON(stdout, map[string]string{"path": r.dir})
	case r.scores == nil:
		fmt.Fprintf(stdout, "run folder: %s\n", r.dir)
	case asJSON:
		return printJSON(stdout, r.scores.report(r.cfg.Eval.Split, r.dir))
	default:
		fmt.Fprintf(stdout, "\n%s on %s: %s\n\n%s\nrun folder: %s\n", r.scores.task(), r.cfg.Eval.Split, r.scores.size(), r.scores.table(), r.dir)
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && train.IsTerminal(f)
}
