package run

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/train/runlog"
)

// What a run does on rank 0 alone, and tells the others.

// onFirst does something quick on rank 0, and agrees on its error.
func (r *Run) onFirst(do func() error) error { return parallel.ByFirst(r.group, do) }

// toldRow is missingRow of rank 0, which has the log. Others know that there is a row, and nothing of it.
func (r *Run) toldRow(evaluated bool) (keep int, row map[string]float64, err error) {
	type told struct {
		Keep int
		Some bool
	}
	var t told
	if r.first() {
		keep, row = r.missingRow(evaluated)
		t = told{keep, row != nil}
	}
	if r.group.Size() == 1 {
		return keep, row, nil
	}
	if err := parallel.Agree(r.group, nil); err != nil {
		return 0, nil, err
	}
	text, err := json.Marshal(t)
	if err == nil {
		text, err = parallel.Told(r.group, text)
	}
	if err == nil && !r.first() {
		if err = json.Unmarshal(text, &t); err == nil && t.Some {
			row = map[string]float64{}
		}
	}
	return t.Keep, row, err
}

// openLog opens the log, of which rows up to a step are kept.
func (r *Run) openLog(keep int) (runlog.Logger, error) {
	if r.group.Size() == 1 {
		return r.openFiles(keep)
	}
	l := &sharedLog{run: r}
	return l, r.onFirst(func() (err error) {
		l.files, err = r.openFiles(keep)
		return err
	})
}

// openFiles opens metrics.jsonl and the file of TensorBoard.
func (r *Run) openFiles(keep int) (runlog.Logger, error) {
	metrics, err := runlog.OpenMetrics(filepath.Join(r.dir, runlog.MetricsFile), keep)
	if err != nil {
		return nil, err
	}
	events, err := runlog.NewEvents(r.dir, max(keep, 0), time.Now)
	if err != nil {
		return nil, errors.Join(err, metrics.Close())
	}
	return guardedLog{runlog.Multi(metrics, events), r.lost}, nil
}

// sharedLog is the log of several ranks: rank 0 writes it, and where it cannot all end.
type sharedLog struct {
	run   *Run
	files runlog.Logger // of rank 0
}

var (
	_ runlog.Logger   = (*sharedLog)(nil)
	_ runlog.Rewinder = (*sharedLog)(nil)
)

// Log implements runlog.Logger.
func (l *sharedLog) Log(step int, values map[string]float64) error {
	return l.run.onFirst(func() error { return l.files.Log(step, values) })
}

// Rewind implements runlog.Rewinder.
func (l *sharedLog) Rewind(step int) error {
	return l.run.onFirst(func() error { return l.files.(runlog.Rewinder).Rewind(step) })
}

// Close implements runlog.Logger. Others do not wait for it: a run that has lost its group closes its log too.
func (l *sharedLog) Close() error {
	if l.files == nil {
		return nil
	}
	return l.files.Close()
}

// clock has the clock of rank 0 decide on all ranks what depends on the time that the run took; nil where nothing
// does.
func (r *Run) clock(limit time.Duration) func(own time.Duration) (time.Duration, error) {
	if r.group.Size() == 1 || limit == 0 && r.cfg.Train.SaveEveryMinutes == 0 {
		return nil
	}
	return func(own time.Duration) (time.Duration, error) {
		text, err := json.Marshal(own)
		if err == nil {
			text, err = parallel.Told(r.group, text)
		}
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		return own, err
	}
}

// guardedLog is a log that is not written any more once the lock of its folder is lost.
type guardedLog struct {
	runlog.Logger
	lost func() error
}

var _ runlog.Rewinder = guardedLog{}

// Log implements runlog.Logger.
func (l guardedLog) Log(step int, values map[string]float64) error {
	if err := l.lost(); err != nil {
		return err
	}
	return l.Logger.Log(step, values)
}

// Rewind implements runlog.Rewinder.
func (l guardedLog) Rewind(step int) error {
	if err := l.lost(); err != nil {
		return err
	}
	return l.Logger.(runlog.Rewinder).Rewind(step)
}
