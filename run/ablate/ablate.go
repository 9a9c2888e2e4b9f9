package ablate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/train/schedule"
)

// Files of an ablation in its folder.
const (
	TableFile   = ablation.TableFile
	CSVFile     = "table.csv"
	ResultsFile = "results.json"
)

// Run makes the runs that are left, one after another, and writes the table after each.
// Other processes are kept from the folder meanwhile. A cancelled ctx saves the run in
// progress and ends with train.ErrInterrupted; runs that fail are marked, see Verdict.
//
// It begins with CheckInputs.
func (a *Ablation) Run(ctx context.Context) error {
	if a.tuning != nil {
		if err := a.tune(ctx); err != nil {
			return err
		}
	}
	if err := a.CheckInputs(); err != nil {
		return err
	}
	if err := folder.Writable(a.Out); err != nil {
		return err
	}
	lock, err := folder.Lock(a.Out, func(format string, args ...any) { fmt.Fprintf(a.note, format+"\n", args...) })
	if err != nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // the end of the process does so too
	var made []*job
	open := 0
	for _, j := range a.jobs {
		if j.made {
			made = append(made, j)
			if !j.settled(a.o.Retry) {
				open++
			}
		}
	}
	if n := len(made) - open; n > 0 && open > 0 {
		fmt.Fprintf(a.note, "%d of %s are done already\n", n, words.Count(len(made), "run"))
	}
	warned := false
	for i, j := range made {
		if err := ctx.Err(); err != nil {
			return err
		}
		if j.settled(a.o.Retry) {
			continue
		}
		fmt.Fprintf(a.note, "\n=== run %d of %d: %s%s\n", i+1, len(made), j, a.remaining(made[i:]))
		if err := a.make(ctx, j); err != nil {
			return errors.Join(err, a.save())
		}
		if err := a.save(); err != nil {
			return err
		}
		switch j.trial.State {
		case ablation.Failed:
			fmt.Fprintf(a.note, "%s failed: %s\n", j, j.trial.Error)
		case ablation.Done:
			if !warned && !j.Run.Hidden {
				warned = true
				for _, m := range a.absent(j) {
					fmt.Fprintf(a.note, "warning: %s logged no %q: %s\n", j, m, a.logged(j))
				}
			}
		}
	}
	return a.save()
}

// make trains one job. The error is an interruption or a folder that cannot be written;
// what is wrong with the run goes into its record.
func (a *Ablation) make(ctx context.Context, j *job) error {
	r := &j.record
	if j.start != nil {
		if j.start.record.State != ablation.Done {
			// No record: the run has not begun.
			*r = record{State: ablation.Failed, Error: "the run that it starts from failed: " + j.start.Run.Name}
			return nil
		}
		r.Start = j.start.record.Ended
	}
	r.State, r.Error, r.Diverged = ablation.Stopped, "", false
	if err := r.write(j.dir); err != nil {
		return err
	}
	debug.FreeOSMemory() // what the run before held
	peak := memory.ResetPeak()
	begin := time.Now()
	err := a.train(ctx, j)
	j.wall = time.Since(begin)
	r.Wall += j.wall.Seconds()
	if peak {
		r.PeakMB = max(r.PeakMB, float64(memory.Peak())/(1<<20))
	}
	if err == nil {
		r.Steps, r.Seconds, err = ended(j.dir)
	}
	switch {
	case err == nil:
		r.State, r.Ended = ablation.Done, time.Now().UTC().Format(time.RFC3339Nano)
	case errors.Is(err, train.ErrInterrupted), ctx.Err() != nil && errors.Is(err, context.Canceled):
		return errors.Join(err, r.write(j.dir))
	default:
		r.State, r.Error, r.Diverged = ablation.Failed, strings.Join(strings.Fields(err.Error()), " "), diverged(err)
	}
	return r.write(j.dir)
}

// diverged says whether a run failed by numbers that are not finite, in a step or in an evaluation.
func diverged(err error) bool {
	var step *train.NonFiniteError
	var scores *eval.NonFiniteError
	return errors.As(err, &step) || errors.As(err, &scores)
}

// train makes one job, which goes on with what its folder holds.
func (a *Ablation) train(ctx context.Context, j *job) error {
	r, err := run.New(ctx, j.cfg, run.Options{Reporter: a.o.Reporter(), Several: true})
	if err != nil {
		return err
	}
	defer r.Close()
	result, err := r.Train(ctx)
	if s, ok := result.Scores.(retrieval.Scores); err == nil && ok && s.Queries != nil {
		err = writeQueries(j.dir, s.Queries)
	}
	return err
}

// remaining tells how long the jobs take by those that are done: of the same run, else by the
// number of steps. It is empty before anything is known.
func (a *Ablation) remaining(jobs []*job) string {
	type rate struct{ wall, n float64 }
	runs := map[string]rate{}
	var all, steps rate
	for _, j := range a.jobs {
		if j.same != nil || j.record.State != ablation.Done || j.record.Wall == 0 {
			continue
		}
		r := runs[j.Run.Name]
		runs[j.Run.Name] = rate{r.wall + j.record.Wall, r.n + 1}
		all = rate{all.wall + j.record.Wall, all.n + 1}
		steps = rate{steps.wall + j.record.Wall, steps.n + float64(j.record.Steps)}
	}
	if all.n == 0 {
		return ""
	}
	seconds := 0.0
	for _, j := range jobs {
		r, known := runs[j.Run.Name]
		switch {
		case j.settled(a.o.Retry):
		case known:
			seconds += r.wall / r.n
		case j.cfg.Train.MaxSteps > 0 && steps.n > 0:
			seconds += steps.wall / steps.n * float64(j.cfg.Train.MaxSteps)
		default:
			seconds += all.wall / all.n
		}
	}
	return fmt.Sprintf(" (about %s left in all)", schedule.Seconds(seconds).Round(time.Second))
}

// tabulate reads what the runs found into a.Results.
func (a *Ablation) tabulate() error {
	columns, errs := a.Matrix.Columns()
	if errs != nil {
		return errs
	}
	r := ablation.Results{Title: a.Matrix.Title, Base: a.Base, Seeds: a.Matrix.Seeds, Baseline: a.Matrix.Baseline,
		Correct: a.Matrix.Correct, Across: a.Matrix.Across.Key, Columns: columns}
	for _, x := range a.Matrix.Runs {
		row := ablation.Row{Name: x.Name, Group: x.Group, Start: x.Start, Set: x.Set, Hidden: x.Hidden,
			Method: x.Method, At: x.At}
		for _, seed := range a.Matrix.Seeds {
			at := slices.IndexFunc(a.jobs, func(j *job) bool { return j.Run.Name == x.Name && j.Seed == seed })
			j := a.jobs[at]
			row.Rerank = j.cfg.Eval.RerankTop > 0
			if j.same != nil {
				j, row.Same = j.same, j.same.Run.Name
			}
			j.trial = ablation.Trial{Seed: seed, State: j.record.State, Error: j.record.Error, Folder: j.dir}
			switch j.record.State {
			case "":
				j.trial.State = ablation.Missing
			case ablation.Done:
				if err := j.outcome(columns); err != nil {
					return err
				}
			}
			row.Trials = append(row.Trials, j.trial)
		}
		r.Rows = append(r.Rows, row)
	}
	r.Tabulate()
	a.Results = r
	return nil
}

// save writes the table and the page as they stand.
func (a *Ablation) save() error {
	if err := a.tabulate(); err != nil {
		return err
	}
	text, err := a.resultsJSON()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{TableFile: []byte(a.Results.Markdown()),
		CSVFile: []byte(a.Results.CSV()), ResultsFile: text} {
		if err := files.Replace(filepath.Join(a.Out, name), content); err != nil {
			return err
		}
	}
	a.savePage()
	return nil
}

// absent lists the metrics that a finished run does not have.
func (a *Ablation) absent(j *job) (list []string) {
	for _, c := range a.Results.Columns {
		if _, ok := j.trial.Values[c.Metric]; !ok {
			list = append(list, c.Metric)
		}
	}
	return list
}

// logged says what a run has logged.
func (a *Ablation) logged(j *job) string {
	rows, err := runlog.ReadMetrics(filepath.Join(j.dir, runlog.MetricsFile))
	if err != nil || len(rows) == 0 {
		return "it has no metrics at all"
	}
	keys := map[string]float64{}
	for _, r := range rows {
		for k, v := range r.Values {
			keys[k] = v
		}
	}
	return "it has " + strings.Join(runlog.Keys(keys), ", ")
}

// Verdict is the error of an ablation whose runs were all made: those that failed, and
// metrics that no run has.
func (a *Ablation) Verdict() error {
	var failed []string
	var done *job
	n := 0
	for _, j := range a.jobs {
		if !j.made {
			continue
		}
		n++
		switch j.record.State {
		case ablation.Failed:
			failed = append(failed, j.String())
		case ablation.Done:
			if !j.Run.Hidden {
				done = j
			}
		}
	}
	var errs []error
	if failed != nil {
		errs = append(errs, fmt.Errorf("%d of %s failed (the table says why): %s", len(failed), words.Count(n, "run"),
			strings.Join(failed, "; ")))
	}
	for _, c := range a.Results.Columns {
		has := false
		for _, r := range a.Results.Rows {
			for _, t := range r.Trials {
				_, ok := t.Values[c.Metric]
				has = has || ok
			}
		}
		if !has && done != nil {
			errs = append(errs, fmt.Errorf("metrics: no run logged %q: %s", c.Metric, a.logged(done)))
		}
	}
	return errors.Join(errs...)
}
