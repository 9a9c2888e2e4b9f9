package exec_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// TestOnComplete: what a bound node's memory holds when it is told to be complete is the value, and to change the
// memory from then on changes no other, in random graphs of sums, products, names and ops in place, where bound nodes are read
// and added to by others. The order is that of Bound, and half of them are complete before the end.
func TestOnComplete(t *testing.T) {
	early, all := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := newSums(t, 2, r)
		pool := s.inputs[:2:2]
		pick := func() *gorgonia.Node { return pool[max(0, len(pool)-1-r.IntN(6))] }
		for range 6 + r.IntN(16) {
			var n *gorgonia.Node
			switch r.IntN(7) {
			case 0, 1:
				n = s.add(pick(), pick())
			case 2:
				n = s.negate(pick())
			case 3:
				n = s.name(pick())
			default:
				n = s.shift(pick(), true)
			}
			pool = append(pool, n)
		}
		last := s.shift(s.add(pool[len(pool)-1], pool[len(pool)-2]), false)
		bind := map[*gorgonia.Node][]float32{}
		s.outputs = gorgonia.Nodes{last}
		for _, n := range []*gorgonia.Node{pick(), pick()} {
			if len(computedOf(s, n)) > 0 && bind[n] == nil {
				s.outputs, bind[n] = append(s.outputs, n), make([]float32, accumulateLen)
			}
		}
		want := s.compile(t, exec.Config{Outputs: append(computed(s.g, s.outputs), s.outputs...)})
		run(t, want)
		got, err := exec.Compile(s.g, exec.Config{Engine: engine, Outputs: s.outputs, Bind: bind})
		if err != nil {
			continue // two names of one memory
		}
		for i, n := range s.inputs {
			check.OK(t, got.SetInput(n, s.values[i]))
		}
		order := got.Bound()
		if len(order) != len(bind) {
			t.Fatalf("%d bound nodes, want %d", len(order), len(bind))
		}
		next := 0
		got.OnComplete(func(k int) {
			if k != next {
				t.Fatalf("node %d is complete after %d others", k, next)
			}
			next++
			n := order[k]
			w := check.Get(want.Value(n))(t)
			if !slices.Equal(bind[n], w.F32) {
				t.Errorf("seed %d: %v is %v when it is complete, want %v", seed, n, bind[n], w.F32)
			}
			for i := range bind[n] {
				bind[n][i] = float32(math.NaN())
			}
		})
		for range 2 {
			next = 0
			run(t, got)
			if next != len(order) {
				t.Fatalf("%d of %d nodes were told", next, len(order))
			}
			sameOutputs(t, s.outputs[:1], got, want)
		}
		for k := range order {
			all++
			if got.CompleteBefore(k) {
				early++
			}
		}
		got.OnComplete(nil)
		run(t, got)
		check.OK(t, got.RunTo(t.Context(), last))
	}
	if early < all/2 || all < 200 {
		t.Errorf("%d of %d bound nodes are complete before the end", early, all)
	}
}

// computedOf are the computed nodes that n depends on, n among them; none where it names an input.
func computedOf(s *sums, n *gorgonia.Node) gorgonia.Nodes {
	for n.Op() != nil {
		if o, ok := n.Op().(*testOp); !ok || !o.alias {
			return computed(s.g, gorgonia.Nodes{n})
		}
		it := s.g.From(n.ID())
		it.Next()
		n = it.Node().(*gorgonia.Node)
	}
	return nil
}

// TestOnCompleteOnADevice: bound memory is complete when the run is.
func TestOnCompleteOnADevice(t *testing.T) {
	s := newSums(t, 2, rand.New(rand.NewPCG(3, 7)))
	sum := s.add(s.negate(s.inputs[0]), s.shift(s.inputs[1], true))
	s.outputs = gorgonia.Nodes{sum, s.shift(sum, false)}
	mem := make([]float32, accumulateLen)
	want := s.compile(t, exec.Config{})
	run(t, want)
	got := s.compile(t, exec.Config{Device: &ram{}, Bind: map[*gorgonia.Node][]float32{sum: mem}})
	told := 0
	got.OnComplete(func(int) {
		told++
		if w, err := want.Value(sum); err != nil || !slices.Equal(mem, w.F32) {
			t.Errorf("%v, want %v (%v)", mem, w.F32, err)
		}
	})
	if err := got.RunAll(); err != nil || told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
}
