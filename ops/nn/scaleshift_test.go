package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestScaleShift compares the op with its definition over random shapes and parts, and its gradients
// with finite differences. A scale of 1 and a shift of 0 give the bits of x.
func TestScaleShift(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for i, s := range append([][]int{{1, 1}, {300, 7}}, optest.RandomShapes(r, 6, 20, 40)...) {
		from, after := i%3, i%2
		total := from + s[1] + after
		x, scale, shift := optest.F32s(r, "x", s[0], s[1]), optest.F32s(r, "scale", total), optest.F32s(r, "shift", total)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleShift(ns[0], ns[1], ns[2], from) }
		want := make([]float32, s[0]*s[1])
		for i := range want {
			c := from + i%s[1]
			want[i] = float32(float64(x.Floats()[i])*float64(scale.Floats()[c]) + float64(shift.Floats()[c]))
		}
		optest.Near(t, "scale shift", optest.Eval(t, build, x, scale, shift).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0, 1, 2}, 1e-1, 2e-3, x, scale, shift)
		for c := range total {
			scale.Floats()[c], shift.Floats()[c] = 1, 0
		}
		optest.Near(t, "the identity", optest.Eval(t, build, x, scale, shift).F32, x.Floats(), 0)
	}
}
