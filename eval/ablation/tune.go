package ablation

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
)

// Tune is how the settings of runs are chosen before the runs are made: each trial of a run is trained with seeds of
// its own and evaluated on a validation part, and the run takes the trial with the best mean. Every run with trials
// has the same number of them, so that no method is searched for longer than another.
type Tune struct {
	Seeds  []int64  `toml:"seeds"`  // run.seed of the trials, none of Matrix.Seeds
	Set    []string `toml:"set"`    // overrides of every trial, after its own: the split that chooses
	Metric string   `toml:"metric"` // that compares trials; empty: the first of Matrix.Metrics
}

// checkTune requires that trials can be compared, fairly.
func (m *Matrix) checkTune(fail func(path string, value any, msg, hint string)) {
	var first *Run
	for i := range m.Runs {
		r := &m.Runs[i]
		path := fmt.Sprintf("run[%d].trials", i+1)
		switch {
		case len(r.Trials) == 0:
			continue
		case r.Start != "":
			fail(path, len(r.Trials), fmt.Sprintf("run %q starts from another run: such a run is not tuned", r.Name),
				"leave out start or trials")
		case first != nil && len(r.Trials) != len(first.Trials):
			fail(path, len(r.Trials), fmt.Sprintf("run %q must have as many trials as %q, which has %d", r.Name,
				first.Name, len(first.Trials)), "every method is tuned with the same number")
		}
		if first == nil {
			first = r
		}
	}
	if first == nil {
		if len(m.Tune.Seeds) > 0 || len(m.Tune.Set) > 0 || m.Tune.Metric != "" {
			fail("tune", nil, "no run has trials to choose from", `add trials = [["optimizer.lr=2e-4"], ...] to runs`)
		}
		return
	}
	if len(m.Tune.Seeds) == 0 {
		fail("tune.seeds", nil, "must name the seeds of the trials", "such as [101, 102]")
	}
	if err := m.TuneOverlap(); err != nil {
		fail(err.Path, err.Value, err.Msg, err.Hint)
	}
	better := Better(m.Tune.metric(m.Metrics))
	if m.Tune.Metric != "" && better != "higher" && better != "lower" {
		fail("tune.metric", m.Tune.Metric, "is not a metric that is better when higher or lower", "")
	}
}

// metric is the one that compares trials.
func (t Tune) metric(metrics []string) string {
	if t.Metric == "" && len(metrics) > 0 {
		return metrics[0]
	}
	return t.Metric
}

// TuneOverlap is the error of a seed that chooses settings and tests them too, nil without one.
func (m *Matrix) TuneOverlap() *config.Error {
	for _, s := range m.Tune.Seeds {
		if slices.Contains(m.Seeds, s) {
			return &config.Error{Path: "tune.seeds", Value: s, Msg: "must not be among the seeds of the runs",
				Hint: "settings are chosen with seeds that test nothing"}
		}
	}
	return nil
}

// Tuning returns the matrix of all trials, nil if no run has any.
func (m *Matrix) Tuning() *Matrix {
	t := &Matrix{Title: "Trials", Base: m.Base, Set: m.Set, Seeds: m.Tune.Seeds, Better: m.Better,
		Metrics: []string{m.Tune.metric(m.Metrics)}}
	for _, r := range m.Runs {
		for i, set := range r.Trials {
			t.Runs = append(t.Runs, Run{Name: trialName(r.Name, i), Group: r.Name,
				Set: slices.Concat(r.Set, set, m.Tune.Set)})
		}
	}
	if t.Runs == nil {
		return nil
	}
	return t
}

// trialName is the name of trial i, from 0, of a run.
func trialName(run string, i int) string { return fmt.Sprintf("%s, trial %d", run, i+1) }

// Choose gives every run with trials the best of them by the results of Tuning, the earliest of equal ones. A run
// whose trials are not all done has Chosen 0 and the first trial for the time being.
func (m *Matrix) Choose(tuning *Results) {
	rows := map[string]*Row{}
	for i := range tuning.Rows {
		rows[tuning.Rows[i].Name] = &tuning.Rows[i]
	}
	column := tuning.Columns[0]
	for i := range m.Runs {
		r := &m.Runs[i]
		best, most := 0, 0.0
		for k := range r.Trials {
			row := rows[trialName(r.Name, k)]
			if row == nil || row.open() {
				best = 0
				break
			}
			cell := describe(row.values(column.Metric))
			if row.whole() && cell.N > 0 && (best == 0 || column.beats(*cell.Mean, most)) {
				best, most = k+1, *cell.Mean
			}
		}
		if len(r.Trials) > 0 {
			r.Chosen, r.Set = best, slices.Concat(r.Set, r.Trials[max(0, best-1)])
		}
	}
}
