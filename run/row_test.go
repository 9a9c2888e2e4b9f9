package run

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/train/schedule"
)

// spanned is a session of which nothing but its length is asked.
type spanned struct {
	session
	steps int
}

func (s spanned) Span() schedule.Span { return schedule.Span{Total: s.steps} }

// TestMissingRow: a run goes on with one row of the step of its checkpoint, wherever between save, evaluation and log it ended.
func TestMissingRow(t *testing.T) {
	dir := t.TempDir()
	const before, row, evaluated = `{"step":2,"loss":3}` + "\n", `,"loss":2}` + "\n", `,"loss":2,"eval/retrieval/rsum":1}` + "\n"
	for _, c := range []struct {
		what    string
		step    int
		rows    string
		skipped bool
		due     bool // an evaluation
		keep    int
		written bool
	}{
		{what: "a new run", keep: -1},
		{what: "logged", step: 4, rows: before + `{"step":4` + row, keep: 4},
		{what: "killed before the log", step: 4, rows: before, keep: 3, written: true},
		{what: "killed in the log", step: 4, rows: before + `{"step":4,"lo`, keep: 3, written: true},
		{what: "interrupted between two rows", step: 5, rows: before + `{"step":5` + row, keep: 4},
		{what: "saved between two rows", step: 5, rows: before, keep: 4},
		{what: "interrupted before the evaluation", step: 4, rows: before + `{"step":4` + row, due: true, keep: 3, written: true},
		{what: "killed before the evaluation", step: 5, rows: before, due: true, keep: 4, written: true},
		{what: "evaluated", step: 4, rows: before + `{"step":4` + evaluated, due: true, keep: 4},
		{what: "evaluated by another rule", step: 5, rows: before + `{"step":5` + evaluated, keep: 5},
		{what: "an evaluation of an earlier step", step: 4, rows: `{"step":3` + evaluated, due: true, keep: 3, written: true},
		{what: "a step that was left out", step: 5, rows: before, skipped: true, keep: 4, written: true},
		{what: "the first step", step: 1, keep: 0, written: true},
		{what: "the last step", step: 9, rows: before, keep: 8, written: true},
		{what: "a log that cannot be read", step: 4, rows: "nonsense\n" + before, keep: 4},
	} {
		check.OK(t, os.WriteFile(filepath.Join(dir, runlog.MetricsFile), []byte(c.rows), 0o666))
		r := &Run{dir: dir, session: spanned{steps: 9}, cfg: config.Config{Train: config.Train{LogEverySteps: 2}},
			state: train.State{Step: c.step, Values: map[string]float64{"loss": 2}}}
		if c.skipped {
			r.state.Values["skipped"] = 1
		}
		keep, got := r.missingRow(c.due)
		if keep != c.keep || (got != nil) != c.written || got != nil && !maps.Equal(got, r.state.Values) {
			t.Errorf("%s: rows up to %d and %v, want up to %d and one: %v", c.what, keep, got, c.keep, c.written)
		}
	}
}
