package ablation

import (
	"fmt"
	"path"
)

// Job is one training run: a run of the matrix with one seed.
type Job struct {
	Run  *Run
	Seed int64
}

// Plan returns the jobs in the order in which to make them: seed by seed, so that the
// table is whole before it is precise, and within a seed in the order of the file, but
// every start before those that go on from it. only holds globs of run names (as
// path.Match has them), of which those that match are made, with their starts; without
// any all are.
func (m *Matrix) Plan(only []string) ([]Job, error) {
	chosen := map[string]bool{}
	for _, g := range only {
		found := false
		for _, r := range m.Runs {
			ok, err := path.Match(g, r.Name)
			if err != nil {
				return nil, fmt.Errorf("ablation: %q is not a glob: %w", g, err)
			}
			found = found || ok
			chosen[r.Name] = chosen[r.Name] || ok
		}
		if !found {
			return nil, fmt.Errorf("ablation: no run matches %q: trainer ablate --dry-run lists them", g)
		}
	}
	var order []*Run
	done := map[string]bool{}
	var visit func(r *Run)
	visit = func(r *Run) {
		if r == nil || done[r.Name] {
			return
		}
		visit(m.find(r.Start))
		done[r.Name] = true
		order = append(order, r)
	}
	for i := range m.Runs {
		if r := &m.Runs[i]; len(only) == 0 || chosen[r.Name] {
			visit(r)
		}
	}
	var jobs []Job
	for _, s := range m.Seeds {
		for _, r := range order {
			jobs = append(jobs, Job{Run: r, Seed: s})
		}
	}
	return jobs, nil
}
