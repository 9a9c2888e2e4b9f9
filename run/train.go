package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/train/schedule"
)

// Result is what a run found.
type Result struct {
	Folder string   // of the run
	Split  string   // that was evaluated
	Scores Scores   // at the end; nil where there is nothing to evaluate on
	Beside []Scores // on further tasks: of stored features the neighbourhoods, and classes where there are any
	Log    []string // what the log says of the training that is not a result, see package eval/sanity
}

// Cautions are those of the training and of all scores.
func (r Result) Cautions() []string {
	list := r.Log
	if r.Scores != nil {
		list = append(list[:len(list):len(list)], tasks.Cautions(r.Scores)...)
	}
	for _, s := range r.Beside {
		list = append(list, tasks.Cautions(s)...)
	}
	return list
}

// Train makes the steps that are left, with checkpoints, evaluations and logs, evaluates at
// the end and draws the page of the run. A run that is finished is only evaluated. When ctx
// is cancelled the run saves, stops after the step in progress and returns
// train.ErrInterrupted: New and Train on the same configuration then go on. Of several processes all call it;
// the scores are those of rank 0.
func (r *Run) Train(ctx context.Context) (Result, error) {
	result := Result{Folder: r.dir, Split: r.cfg.Eval.Split}
	if r.store != nil {
		return result, errors.New("run: Train was called before: close the run and open it anew to go on")
	}
	var start startValues
	began := r.state.Step
	if r.pairs != nil {
		start = sampleParams(r.pairs.Params())
	}
	err := r.train(ctx)
	if err == nil {
		err = r.finish(ctx)
	}
	err = parallel.Agree(r.group, err)
	result.Scores, result.Beside = r.scores, r.beside
	if err == nil && r.group.Rank() == 0 {
		result.Log = append(trainingCautions(r.dir), ColumnCautions(r.cfg)...)
		if r.pairs != nil {
			result.Log = append(result.Log, tasks.NotEmpty(start.caution(r.pairs.Params(), r.made-began))...)
		}
	}
	return result, err
}

// train prepares the folder and makes the steps.
func (r *Run) train(ctx context.Context) error {
	span := r.session.Span()
	if span.Total > 0 && r.state.Step > span.Total {
		return fmt.Errorf("the checkpoint is at step %d of a run of %d: raise train.max_steps, or start a new run with --resume never", r.state.Step, span.Total)
	}
	elapsed := time.Duration(r.state.Elapsed * float64(time.Second))
	finished := span.Total > 0 && r.state.Step == span.Total || span.Limit > 0 && elapsed >= span.Limit
	shown := r.report.Steps(r.state.Step, span.Total, span.Limit)

	if err := r.onFirst(func() error { return r.prepare(finished) }); err != nil {
		return err
	}
	r.announce(finished)
	defer func() { r.release() }() // what could not be saved cannot be kept either
	return r.steps(ctx, shown, finished, train.Config{Start: r.state.Step, Total: span.Total, Limit: span.Limit,
		Elapsed: elapsed, Clock: r.clock(span.Limit), OnNaN: r.cfg.Train.OnNaN, Rollback: r.rollback})
}

// prepare makes what is in the run folder before the first step.
func (r *Run) prepare(finished bool) (err error) {
	t := r.cfg.Train
	r.store, err = checkpoint.NewStore(filepath.Join(r.dir, runlog.CheckpointsDir),
		checkpoint.Retention{Last: t.KeepLast, Best: t.KeepBest, EverySteps: t.KeepEverySteps, BestBy: t.KeepBestBy})
	if err != nil || finished {
		return err
	}
	text, err := r.cfg.Encode()
	if err != nil {
		return err
	}
	err = runlog.Prepare(r.dir, text, runlog.CollectEnvironment(setup.Description(r.engine), os.Args))
	if err == nil && len(r.data.Splits) > 0 {
		err = record.Keep(r.dir, r.known, r.accepted, r.data.Splits)
	}
	return err
}

// steps completes the log of the steps done before and makes those that are left. shown
// is the hook that shows them.
func (r *Run) steps(ctx context.Context, shown train.Hook, finished bool, c train.Config) (err error) {
	span, t := r.session.Span(), r.cfg.Train
	due := r.evalEvery() > 0 && (finished || schedule.Due(r.state.Step, r.evalEvery(), span.Total))
	keep, missing, err := r.toldRow(due)
	if err != nil || finished && missing == nil {
		return err
	}
	logger, err := r.openLog(keep)
	if err != nil {
		return err
	}
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
		train.Hook{Name: "hold", Stage: train.StageMetrics, After: r.hold},
		train.Metrics(span.Epoch),
		train.Checkpoints(train.SaveConfig{EverySteps: t.SaveEverySteps, EveryMinutes: t.SaveEveryMinutes,
			Save: r.save}),
		r.watchData(),
		train.Evaluations(r.evalEvery(), r.validate),
		train.Logs(t.LogEverySteps, logger),
		shown, r.startHook(),
		train.Hook{Name: "bad samples", Stage: train.StageLog, After: r.tellBad})
	return err
}

// startHook tells once how long it took from the start of the process to the end of
// the first step.
func (r *Run) startHook() train.Hook {
	told := r.several
	return train.Hook{Name: "start", Stage: train.StageLog, After: func(context.Context, *train.Event) error {
		if !told {
			told = true
			r.report.Say("start to the end of the first step: %.2f s", process.Age().Seconds())
		}
		return nil
	}}
}

// evalEvery returns the steps between evaluations: 0 with nothing to evaluate on, a
// number that no run reaches where only the end is evaluated.
func (r *Run) evalEvery() int {
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
func (r *Run) missingRow(evaluated bool) (keep int, row map[string]float64) {
	step := r.state.Step
	if step == 0 {
		return -1, nil
	}
	rows, err := runlog.ReadMetrics(filepath.Join(r.dir, runlog.MetricsFile))
	if err != nil { // there is none, or nothing that can be completed
		return step, nil
	}
	due := evaluated || step == 1 || r.state.Values["skipped"] != 0 ||
		schedule.Due(step, r.cfg.Train.LogEverySteps, r.session.Span().Total)
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
func (r *Run) announce(finished bool) {
	if r.pairs == nil {
		r.announceFit(finished)
		return
	}
	batch := fmt.Sprint(r.cfg.Train.BatchSize)
	if n := r.cfg.Train.AccumulateSteps; n > 1 {
		batch = fmt.Sprintf("%d x %s", n, batch)
	}
	r.report.Say("%s: %d parameters%s, %s, batch %s, run folder %s", r.cfg.Run.Name, r.pairs.Params().Count(),
		r.trained(), r.engine.Describe(), batch, r.dir)
	if finished {
		r.report.Say("the run is finished at step %d: it is only evaluated; train on with a larger train.max_steps, or anew with --resume never", r.state.Step)
		return
	}
	if rates := train.NewRates(r.cfg).String(); rates != "" {
		r.report.Say("times the learning rate: %s", rates)
	}
	if places, took := r.pairs.Lengths(); places != nil {
		r.report.Say("steps for texts of %v places; those of data.token_lengths were compiled in %.2f s", places,
			took.Seconds())
	}
	for _, p := range r.pairs.Chance() {
		r.report.Say("chance level of %s: %.3f", p.Name, p.Value)
	}
	for _, a := range r.cfg.Advice() {
		r.report.Say("note: %s", a)
	}
}

// trained says how many of the parameters are trained, where that is not all of them.
func (r *Run) trained() string {
	if n := r.pairs.Trained(); n < r.pairs.Params().Count() {
		return fmt.Sprintf(", %d trained", n)
	}
	return ""
}

// announceFit is announce of a system without steps.
func (r *Run) announceFit(finished bool) {
	r.report.Say("%s: %s of stored features, %s, run folder %s", r.cfg.Run.Name, r.cfg.Model.Align.Method,
		r.engine.Describe(), r.dir)
	if finished {
		r.report.Say("the run is fitted already: it is only evaluated; fit it anew with --resume never")
		return
	}
	for _, a := range r.cfg.Advice() {
		r.report.Say("note: %s", a)
	}
}

// hold keeps the process from ending at a first signal until the step is saved.
func (r *Run) hold(_ context.Context, e *train.Event) error {
	r.made = e.Step
	if a, ok := parallel.As[parallel.Attentive](r.group); ok {
		a.At("the step after update", e.Step)
	}
	r.release()
	r.release = process.Hold()
	return nil
}

// save has all ranks take what a checkpoint holds, which some of them may have to exchange, and rank 0 write it.
func (r *Run) save(e *train.Event) error {
	snap, err := r.session.Snapshot(e)
	if err := parallel.Agree(r.group, err); err != nil {
		return err
	}
	if err := parallel.Alone(r.group, func() error { return r.write(e, snap) }); err != nil {
		return err
	}
	r.release()
	return nil
}

// write saves a checkpoint.
func (r *Run) write(e *train.Event, snap checkpoint.Snapshot) error {
	if r.evaluated && r.scoreStep == e.Step {
		m, err := r.metric()
		if err != nil {
			return err
		}
		snap.Metric = &m
	}
	if err := r.lost(); err != nil {
		return err
	}
	if err := r.store.Save(e.Step, snap); err != nil {
		return err
	}
	r.saved = e.Step
	if e.Err == nil { // else an older one may be what the user wants to go back to
		r.prune()
	}
	return nil
}

// prune removes old checkpoints. One that cannot be removed is not a reason to stop.
func (r *Run) prune() {
	if _, err := r.store.Prune(); err != nil {
		r.report.Say("%v", err)
	}
}

// validate evaluates eval.split during training. The numbers are those of rank 0, of others there are none.
func (r *Run) validate(ctx context.Context, step int) (values map[string]float64, err error) {
	if err := r.evaluate(ctx, step); err != nil {
		return nil, err
	}
	err = r.onFirst(func() error {
		values, err = r.judge(step)
		return err
	})
	return values, err
}

// judge tells the last evaluation, keeps it with the checkpoint of the same step, and returns its numbers.
func (r *Run) judge(step int) (map[string]float64, error) {
	r.report.Say("step %d  %s: %s", step, r.cfg.Eval.Split, r.scores.Line())
	m, err := r.metric()
	if err != nil {
		return nil, err
	}
	if err := r.lost(); err != nil {
		return nil, err
	}
	if step == r.saved {
		switch err = r.store.SetMetric(step, m); {
		case err == nil:
			r.prune()
		case !errors.Is(err, fs.ErrNotExist): // it went on from another folder
			return nil, err
		}
	}
	for _, s := range r.beside {
		r.report.Say("%s", s.Line())
	}
	return r.evaluation(), nil
}

// evaluation returns the values of the last evaluation as metrics.jsonl names them.
func (r *Run) evaluation() map[string]float64 {
	values := logged(r.scores)
	for _, s := range r.beside {
		maps.Copy(values, logged(s))
	}
	if n := r.set.LeftOut(); n > 0 {
		values["eval/left_out"] = float64(n)
	}
	return values
}

// metric is the number of the last evaluation by which checkpoints are kept: that of the task of the system, or the one
// that train.keep_best_by names.
func (r *Run) metric() (checkpoint.Metric, error) {
	name := r.cfg.Train.KeepBestBy
	if !r.cfg.Train.KeepsByMetric() {
		return r.scores.Metric(), nil
	}
	values := r.evaluation()
	v, ok := values[name]
	if !ok {
		return checkpoint.Metric{}, config.Errors{{Path: "train.keep_best_by", Value: name,
			Msg:  "names a number that the evaluation lacks",
			Hint: "it has " + strings.Join(slices.Sorted(maps.Keys(values)), ", ")}}
	}
	return checkpoint.Metric{Name: name, Value: v}, nil
}

func (r *Run) evaluate(ctx context.Context, step int) error {
	defer r.report.PhasesDone()
	e := Evaluation{Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set, Group: r.group,
		Progress: r.report.Phase, Say: r.report.Say}
	scores, err := Evaluate(ctx, e)
	if err := parallel.Agree(r.group, err); err != nil {
		return err
	}
	var beside []Scores
	for _, e.Task = range tasksBeside(r.cfg, r.set) {
		s, err := Evaluate(ctx, e)
		if err := parallel.Agree(r.group, err); err != nil {
			return err
		}
		beside = append(beside, s)
	}
	r.evaluated, r.scoreStep = true, step
	if r.first() {
		r.scores, r.beside = scores, beside
	}
	return r.onFirst(func() error {
		if err := r.writeSentences(false); err != nil {
			return err
		}
		return r.writeClasses()
	})
}

// rollback goes back to the newest checkpoint of this run, at first the one that it went on from, but keeps the place
// in the data.
func (r *Run) rollback(_ context.Context, bad, attempt int) (int, error) {
	ck, err := setup.SharedCheckpoint(r.group, func() (*checkpoint.Checkpoint, error) {
		if r.from != "" && r.saved == r.state.Step {
			return checkpoint.Load(r.from)
		}
		return checkpoint.Load(r.dir)
	}, checkpoint.Load)
	if err != nil { // on all ranks
		return 0, &train.NoRollbackError{Err: err}
	}
	defer ck.Close()
	if ck.Notice != "" {
		r.report.Say("%s", ck.Notice)
	}
	state, err := r.session.Rollback(ck)
	if err := parallel.Agree(r.group, err); err != nil {
		return 0, err
	}
	r.evaluated = false // the newest scores are of the model that it leaves
	r.report.Say("step %d was not finite: back to step %d (attempt %d)", bad+1, state.Step, attempt)
	return state.Step, nil
}

// tellBad reports bad samples as they appear, the first few with their reason.
func (r *Run) tellBad(_ context.Context, e *train.Event) error {
	s := r.Session()
	if s == nil { // a fit ends at a bad row
		return nil
	}
	bad, read, examples := s.Loader().Bad()
	for ; r.told < min(len(examples), 5); r.told++ {
		r.warn("bad sample, skipped: %v", examples[r.told].Err)
	}
	if bad > 0 && (e.Last || e.Interrupted) {
		r.warn("%d of %d samples read were bad and skipped (data.max_bad_share = %g; trainer data check lists what is wrong)", bad, read, r.cfg.Data.MaxBadShare)
	}
	return nil
}

// finish evaluates the trained model, unless that was just done, and draws the page.
func (r *Run) finish(ctx context.Context) error {
	if r.set != nil && !r.evaluated { // training ends with an evaluation
		if err := r.evaluate(ctx, r.state.Step); err != nil {
			return err
		}
	}
	return parallel.Alone(r.group, func() error {
		if err := r.writeSentences(true); err != nil {
			return err
		}
		return r.writePage(ctx)
	})
}
