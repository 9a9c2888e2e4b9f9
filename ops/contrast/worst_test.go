package contrast

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestWorst compares the worse score of each pair with its definition, and gradients with finite differences.
func TestWorst(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	for _, n := range []int{1, 2, 7, 90} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Worst(ns[0], ns[1]) }
		a, b := optest.F32s(r, "a", n, n), optest.F32s(r, "b", n, n)
		want := make([]float32, n*n)
		for i := range n {
			for j := range n {
				x, y := a.Floats()[i*n+j], b.Floats()[i*n+j]
				want[i*n+j] = max(x, y)
				if i == j {
					want[i*n+j] = min(x, y)
				}
			}
		}
		if got := optest.Eval(t, build, a, b).F32; !slices.Equal(got, want) {
			t.Errorf("%d pairs: got %v, want %v", n, got, want)
		}
		optest.CheckGrad(t, build, []int{0, 1}, 1e-5, 2e-2, a, b)
	}
	// Of equal scores the first has the gradient.
	same := optest.In("a", []int{2, 2}, []float32{1, 2, 3, 4})
	grads, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Worst(ns[0], ns[1]) }, []int{0, 1}, same, optest.In("b", []int{2, 2}, []float32{1, 2, 3, 4}))
	if slices.Contains(grads[0], 0) || !slices.Equal(grads[1], make([]float32, 4)) {
		t.Errorf("gradients of equal scores are %v and %v", grads[0], grads[1])
	}
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "wide", 2, 3), optest.F32s(r, "two", 2, 2), optest.F32s(r, "three", 3, 3)})
	optest.BuildError(t, "wide", "want scores (B, B)", func() { Worst(ns[0], ns[0]) })
	optest.BuildError(t, "shapes", "both scores must have one shape", func() { Worst(ns[1], ns[2]) })
}
