package train

import (
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// spoils is how many ops are spoilt for each policy.
var spoils = flag.Int("spoils", 6, "random ops that TestSpoiltOps spoils for each policy")

// onlyFinite fails if a number that a step changes is not finite.
func (s *Session) onlyFinite(t *testing.T, when string) {
	t.Helper()
	for name, x := range s.memory() {
		for i, v := range x {
			if !finite(float64(v)) {
				t.Errorf("%s: %s[%d] is %v", when, name, i, v)
				break
			}
		}
	}
}

// An op anywhere in the step that makes a NaN or an infinity: the step is refused with nothing
// changed, or does not read the number; each policy then does what it says, and nothing that is
// not finite is in memory or saved. With compute.check_nan the op is named.
func TestSpoiltOps(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, named := range []bool{false, true} {
		sets := []string{"objective.itc.score=geodesic", "queue.size=24", "objective.geodesic.layers=[2, 6]", "objective.geodesic.period_steps=4", "objective.geodesic.entries=4"}
		if named {
			sets = append(sets, "compute.check_nan=true", "momentum.rule=dynamic")
		}
		s := small(t, 0, 0, sets...)
		for i := range 4 {
			s.must(t, i)
		}
		start := s.save(t, t.TempDir(), 4)
		machine := s.pairs().Machine()
		refused := 0
		for i := range 3 * *spoils {
			policy := []string{"stop", "skip", "rollback"}[i%3]
			check.Get(s.Restore(start))(t)
			v := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)]
			op, undo := exec.Spoil(machine, r.IntN(machine.Nodes()), int(r.Uint32()), v)
			refused += s.survives(t, start, policy, op, undo, named)
			undo()
		}
		t.Logf("%d of %d steps with a spoilt op were refused", refused, 3**spoils)
		if refused == 0 {
			t.Error("no step was refused")
		}
	}
}

// survives makes three steps, the first with a spoilt op, and reports whether that was refused.
func (s *Session) survives(t *testing.T, start *checkpoint.Checkpoint, policy, op string, undo func(), named bool) (refused int) {
	t.Helper()
	before, calls := s.memory(), 0
	stepper := watched{s, func(ctx context.Context, step int) (StepResult, error) {
		res, err := s.Step(ctx, step)
		if calls++; calls == 1 {
			undo()
			var bad *NonFiniteError
			switch {
			case errors.As(err, &bad):
				refused = 1
				for name, x := range s.memory() {
					if !slices.Equal(x, before[name]) {
						t.Errorf("%s spoilt: %s changed", op, name)
					}
				}
				if named && !strings.Contains(bad.What, op+" made") {
					t.Errorf("%s spoilt: got %v", op, bad)
				}
			case err != nil:
				t.Errorf("%s spoilt: %v", op, err)
			case named && op != "":
				t.Errorf("%s spoilt: not seen", op)
			}
			s.onlyFinite(t, op+" spoilt")
		}
		return res, err
	}}
	out, err := Run(t.Context(), Config{Start: 4, Total: 7, OnNaN: policy, Rollback: func(context.Context, int, int) (int, error) {
		state, err := s.Rollback(start)
		return state.Step, err
	}}, stepper)
	want := Outcome{Step: 7}
	switch {
	case refused == 0:
	case policy == "stop":
		want.Step = 4
	case policy == "skip":
		want.Skipped = 1
	default:
		want.Rollbacks = 1
	}
	out.Elapsed = 0
	if out != want || (err != nil) != (want.Step == 4) {
		t.Errorf("%s spoilt, %s: %+v, %v", op, policy, out, err)
	}
	s.onlyFinite(t, "after "+op)
	if _, err := s.Snapshot(&Event{Step: out.Step}); err != nil {
		t.Errorf("%s spoilt, %s: %v", op, policy, err)
	}
	return refused
}

// watched is a session whose steps go through a function.
type watched struct {
	*Session
	step func(ctx context.Context, step int) (StepResult, error)
}

func (w watched) Step(ctx context.Context, step int) (StepResult, error) { return w.step(ctx, step) }
