package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// Retention says which checkpoints Prune keeps: those that any rule names. The
// one that latest points at always stays.
type Retention struct {
	Last       int // the newest so many; 0: all
	Best       int // the so many with the highest metric by BestBy; earlier wins a tie
	EverySteps int // those whose step is a multiple; 0: none
	// BestBy is the rule that chooses the metrics of this run (train.keep_best_by). Those of another rule are not
	// compared with them, but those of earlier versions, of which it is not known.
	BestBy string
}

// kept returns the steps to keep of entries, ordered by step.
func (r Retention) kept(entries []Entry) map[int]bool {
	keep := map[int]bool{}
	for i, e := range entries {
		if r.Last <= 0 || i >= len(entries)-r.Last || r.EverySteps > 0 && e.Step%r.EverySteps == 0 {
			keep[e.Step] = true
		}
	}
	best := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return e.Metric == nil || e.BestBy != "" &&
			e.BestBy != r.BestBy
	})
	sort.SliceStable(best, func(i, j int) bool { return *best[i].Metric > *best[j].Metric })
	for i := 0; i < min(r.Best, len(best)); i++ {
		keep[best[i].Step] = true
	}
	return keep
}

// Prune removes the checkpoints that the retention does not keep and returns
// their steps. It goes on after a failed removal and joins the errors.
// Checkpoints newer than latest, left by a run that was continued from an
// earlier step, are not touched until the run gets there and replaces them.
func (s *Store) Prune() (removed []int, err error) {
	newest, err := readLatest(s.dir)
	if err != nil {
		return nil, err
	}
	entries, err := List(s.dir)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Step > newest })
	keep := s.keep.kept(entries)
	keep[newest] = true
	for _, e := range entries {
		if keep[e.Step] {
			continue
		}
		// The new name first: a removal that is cut short must not leave a folder that looks whole.
		temp := filepath.Join(s.dir, tempPrefix+"removed-"+filepath.Base(e.Path))
		rerr := os.Rename(e.Path, temp)
		if rerr == nil {
			rerr = os.RemoveAll(temp)
		}
		if rerr != nil {
			err = errors.Join(err, fmt.Errorf("checkpoint: remove step %d: %w", e.Step, rerr))
			continue
		}
		removed = append(removed, e.Step)
	}
	return removed, err
}
