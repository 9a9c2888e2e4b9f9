package train

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// globally has ranks compare the pairs of all, as one process does.
var globally = []string{"parallel.contrast=global", "parallel.negatives=global"}

// manyOf returns a session for each of n ranks.
func manyOf(t *testing.T, n int, cfg config.Config) (sessions []*Session) {
	t.Helper()
	for _, g := range paralleltest.Ranks(n) {
		s := check.Get(sessionIn(t, cfg, g, nil, func(all data.Stream) data.Stream { return all }))(t)
		sessions = append(sessions, s)
	}
	return sessions
}

// alike says whether two losses differ by rounding alone.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b) }

// TestRanksTrainLikeOneProcess: the losses of 1, 2 and 4 ranks with one global batch are the same but for rounding, with dropout, masks,
// negatives, teacher, queue and graphs, over the end of an epoch, from micro-batches too; so are norms and measures.
func TestRanksTrainLikeOneProcess(t *testing.T) {
	for name, sets := range map[string][]string{
		"albef":         nil,
		"micro-batches": {"train.accumulate_steps=2"},
		"lengths":       {"train.accumulate_steps=2", "data.token_lengths=[6, 8, 10]"},
		"geodesic":      {"objective.itc.score=geodesic", "objective.geodesic.layers=[2, 6]", "objective.geodesic.entries=4", "objective.geodesic.period_steps=4", "objective.geodesic.lag_steps=2"},
		"clip":          {"model.system=clip", "model.text.fusion_layers=0", "objective.mlm.weight=0", "objective.itm.weight=0", "eval.rerank_top=0", "objective.siglip.weight=1"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parallelConfig(t, append(append([]string{"data.scenes.epoch_samples=60"}, globally...), sets...)...)
			one := manyOf(t, 1, cfg)[0]
			var all [][]*Session
			for _, n := range []int{2, 4} {
				all = append(all, manyOf(t, n, cfg))
			}
			for step := range 6 {
				want := one.must(t, step)
				for _, sessions := range all {
					got, errs := together(t, sessions, step)
					check.OK(t, errors.Join(errs...))
					for i, r := range got {
						if !alike(r.Loss, want.Loss) || !(math.Abs(r.GradNorm/want.GradNorm-1) <= 1e-3) || r.Samples != want.Samples || len(r.Parts) != len(want.Parts) {
							t.Errorf("step %d, rank %d of %d: loss %v and norm %v of %d samples, want %v and %v of %d", step, i, len(sessions), r.Loss, r.GradNorm, r.Samples, want.Loss, want.GradNorm, want.Samples)
						}
						if sessions[i].loader.Position() != one.loader.Position() {
							t.Errorf("step %d, rank %d of %d: at sample %d, want %d", step, i, len(sessions), sessions[i].loader.Position(), one.loader.Position())
						}
					}
				}
			}
			for _, sessions := range all {
				for i, s := range sessions[1:] {
					sameMemory(t, fmt.Sprintf("rank %d of %d", i+1, len(sessions)), s.memory(), sessions[0].memory())
				}
			}
		})
	}
}

// TestTheStateOfRank0IsThatOfTheRun: two ranks that are set to the checkpoint of rank 0 go on with the bits of those that were
// not interrupted, in the middle of a rebuild of graphs too; one process and four ranks go on with the same losses.
func TestTheStateOfRank0IsThatOfTheRun(t *testing.T) {
	for _, lag := range []string{"0", "2"} {
		cfg := parallelConfig(t, append([]string{"objective.itc.score=geodesic", "objective.geodesic.layers=[2, 6]", "objective.geodesic.entries=4",
			"objective.geodesic.period_steps=4", "objective.geodesic.lag_steps=" + lag}, globally...)...)
		whole := manyOf(t, 2, cfg)
		for step := range 8 {
			if _, errs := together(t, whole, step); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
		}
		c := whole[0].save(t, t.TempDir(), 8)
		if g := whole[0].pairs().Graphs(); g.Begun < 0 || (g.Pending != nil) != (lag == "2") {
			t.Fatalf("lag %s: graphs of step %d, a rebuild %v: the test shows nothing", lag, g.Begun, g.Pending != nil)
		}
		resumed := map[int][]*Session{}
		for _, n := range []int{1, 2, 4} {
			resumed[n] = manyOf(t, n, cfg)
			for _, s := range resumed[n] {
				state, err := s.Restore(c)
				if err != nil || state.Step != 8 || len(state.Unread) != 0 || s.loader.Position() != 64 {
					t.Fatalf("%d ranks: %v, %+v, at %d", n, err, state, s.loader.Position())
				}
			}
		}
		for step := 8; step < 12; step++ {
			want, errs := together(t, whole, step)
			if errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
			for n, sessions := range resumed {
				got, errs := together(t, sessions, step)
				if errors.Join(errs...) != nil {
					t.Fatal(errs)
				}
				for i, r := range got {
					if n == 2 && r.Loss != want[0].Loss || !alike(r.Loss, want[0].Loss) {
						t.Errorf("lag %s, step %d, rank %d of %d: loss %v, want %v", lag, step, i, n, r.Loss, want[0].Loss)
					}
				}
			}
		}
		for i, s := range resumed[2] {
			sameMemory(t, fmt.Sprint("rank ", i), s.memory(), whole[0].memory())
			sameMemory(t, fmt.Sprint("graphs of rank ", i), graphMemory(s.pairs().Graphs()), graphMemory(whole[0].pairs().Graphs()))
		}
	}
}

// TestSharesHoldWholeIdentities where a rank compares its own rows alone.
func TestSharesHoldWholeIdentities(t *testing.T) {
	c := config.Default()
	c.Model.System, c.Train.BatchSize, c.Data.Identities.Images = "identities", 24, 4
	for ranks, fits := range map[int]bool{1: true, 2: true, 3: true, 4: false} {
		for _, contrast := range []string{config.OfOwnRank, config.OfAllRanks} {
			c.Parallel.Contrast = contrast
			if err := wholeIdentities(c, ranks); (err == nil) != (fits || contrast == config.OfAllRanks) {
				t.Errorf("%d ranks, %s: %v", ranks, contrast, err)
			} else if err != nil && !strings.Contains(err.Error(), "the 6 rows of a process must hold whole identities of 4 images") {
				t.Error(err)
			}
		}
	}
	c.Parallel.Contrast = config.OfOwnRank
	for _, weight := range []float64{0, 1} {
		c.Objective.Triplet.Weight = weight
		if err := wholeIdentities(c, 6); (err == nil) != (weight == 0) || err != nil && !strings.Contains(err.Error(), "the 4 rows of a process are of one identity") {
			t.Errorf("one identity for each process, weight %v: %v", weight, err)
		}
	}
}
