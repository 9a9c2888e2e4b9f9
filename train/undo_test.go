package train

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// cut is a context that is cancelled when it is looked at for the nth time.
type cut struct {
	context.Context
	left *int
}

func cutAfter(n int) cut { return cut{context.Background(), &n} }

func (c cut) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// state copies everything that a checkpoint holds, the graphs too where there are some.
func (s *Session) state() map[string][]float32 {
	out := s.memory()
	if g := s.pairs().Graphs(); g != nil {
		g.Wait() // for the end of a rebuild beside the steps
		if g.Text != nil {
			maps.Copy(out, graphMemory(g))
		}
	}
	out["position"] = []float32{float32(s.loader.Position())}
	return out
}

// A step that is given up at any place and taken back leaves what was there before it. A
// session that goes on from the checkpoint then made, and the session itself, end like one
// that was never stopped.
func TestStepTakenBack(t *testing.T) {
	geodesic := []string{"objective.itc.score=geodesic", "queue.size=24", "objective.geodesic.layers=[2, 6]", "objective.geodesic.entries=4", "objective.geodesic.period_steps=4"}
	for name, c := range map[string]struct {
		sets []string
		from int // steps before the one that is given up
	}{
		"two micro-batches":       {[]string{"train.batch_size=4", "train.accumulate_steps=2"}, 2},
		"pairs of two compared":   {comparedSets("train.batch_size=4", "train.accumulate_steps=2"), 2},
		"graphs in the step":      {geodesic, 7},
		"graphs beside":           {append(slices.Clone(geodesic), "objective.geodesic.lag_steps=2"), 7},
		"graphs switched in":      {append(slices.Clone(geodesic), "objective.geodesic.lag_steps=2"), 9},
		"prototypes":              {viewsSets("swav"), 2},
		"prototypes, three parts": {viewsSets("swav", "train.accumulate_steps=3", "train.batch_size=4"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			whole, s := small(t, 0, 0, c.sets...), small(t, 0, 0, c.sets...)
			for i := range c.from {
				whole.must(t, i)
				s.must(t, i)
			}
			looks := 0 // at the context in a step
			{
				x := small(t, 0, 0, c.sets...)
				ctx := cutAfter(1 << 30)
				check.Get(x.Step(ctx, 0))(t)
				looks = 1<<30 - *ctx.left
			}
			before := s.state()
			for _, n := range []int{0, 1, 2, looks / 3, looks / 2, looks * 2 / 3, looks - 1} {
				if _, err := s.Step(cutAfter(n), c.from); !errors.Is(err, context.Canceled) {
					t.Fatalf("stopped at look %d of %d: %v", n, looks, err)
				}
				if !s.Undo() {
					t.Fatalf("stopped at look %d: not taken back", n)
				}
			}
			if s.pairs().Graphs() == nil { // graphs that were due are rebuilt
				sameMemory(t, "taken back", s.state(), before)
			}
			resumed := small(t, 0, 0, c.sets...)
			ck := s.save(t, t.TempDir(), c.from)
			check.Get(resumed.Restore(ck))(t)
			for i := range 6 {
				whole.must(t, c.from+i)
				s.must(t, c.from+i)
				resumed.must(t, c.from+i)
			}
			sameMemory(t, "went on", s.state(), whole.state())
			sameMemory(t, "resumed", resumed.state(), whole.state())
			if s.Undo() {
				t.Error("a step that was made is taken back")
			}
		})
	}
}
