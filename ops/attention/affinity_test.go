package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestAffinity compares values with the definition and gradients with finite differences.
func TestAffinity(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	for _, s := range optest.RandomShapes(r, 12, 5, 6, 7, 9) {
		rows, l, d, e := s[0], s[1], s[2], s[3]
		q, k, v := optest.F32s(r, "q", rows*l, d), optest.F32s(r, "k", rows*l, d), optest.F32s(r, "v", rows*l, e)
		lengths := optest.RandomInts(r, rows, l+1)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Affinity(ns[0], ns[1], ns[2], ns[3], l) }
		want := make([]float32, rows*l*e)
		for b, n := range lengths {
			for i := range int(n) {
				for c := range e {
					var sum float64
					for j := range int(n) {
						var dot float64
						for x := range d {
							dot += float64(q.Floats()[(b*l+i)*d+x]) * float64(k.Floats()[(b*l+j)*d+x])
						}
						sum += dot * float64(v.Floats()[(b*l+j)*e+c])
					}
					want[(b*l+i)*e+c] = float32(sum / float64(n))
				}
			}
		}
		in := []optest.Input{q, k, v, optest.I32s("lengths", lengths, rows)}
		optest.Near(t, "affinity", optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1, 2}, 1e-2, 1e-2, in...)
	}
	in := []optest.Input{optest.F32s(r, "q", 6, 2), optest.F32s(r, "v", 6, 3), optest.I32s("lengths", []int32{3, 4}, 2)}
	_, ns := optest.Nodes(in)
	for want, build := range map[string]func(){
		"q and k must have one shape":   func() { Affinity(ns[0], ns[1], ns[1], ns[2], 3) },
		"multiple of 4":                 func() { Affinity(ns[0], ns[0], ns[1], ns[2], 4) },
		"lengths must have shape (3)":   func() { Affinity(ns[0], ns[0], ns[1], ns[2], 2) },
		"sequences of at least one row": func() { Affinity(ns[0], ns[0], ns[1], ns[2], 0) },
	} {
		optest.BuildError(t, want, want, build)
	}
	optest.RunError(t, "lengths[1] is 4: want [0, 3]", func(ns gorgonia.Nodes) *gorgonia.Node { return Affinity(ns[0], ns[0], ns[1], ns[2], 3) }, in...)
}
