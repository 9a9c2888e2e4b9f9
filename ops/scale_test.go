package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

func TestScaling(t *testing.T) {
	div := func(ns gorgonia.Nodes) *gorgonia.Node { return DivScalar(ns[0], ns[1]) }
	mul := func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }
	x, s := input{"x", []int{2, 2}, []float32{1, -2, 3, 0}}, input{"s", nil, []float32{4}}
	near(t, "div", eval(t, div, x, s).F32, []float32{.25, -.5, .75, 0}, 0)
	near(t, "mul", eval(t, mul, x, s).F32, []float32{4, -8, 12, 0}, 0)
	r := rand.New(rand.NewPCG(5, 1))
	for range 10 {
		shape := make([]int, r.IntN(4))
		for i := range shape {
			shape[i] = 1 + r.IntN(20)
		}
		x := f32s(r, "x", shape...)
		s := input{"s", nil, []float32{0.5 + r.Float32()}}
		quotients, products := make([]float32, len(x.floats())), make([]float32, len(x.floats()))
		for i, v := range x.floats() {
			quotients[i], products[i] = v/s.floats()[0], v*s.floats()[0]
		}
		near(t, "div", eval(t, div, x, s).F32, quotients, 2e-7)
		near(t, "mul", eval(t, mul, x, s).F32, products, 0)
		checkGrad(t, div, []int{0, 1}, 1e-2, 2e-3, x, s)
		checkGrad(t, mul, []int{0, 1}, 1e-2, 2e-3, x, s)
	}
	_, ns := nodes([]input{x, s})
	wantBuildError(t, "scalar", "want a scalar", func() { DivScalar(ns[1], ns[0]) })
}

// TestScaledDotBlocks checks a sum of several blocks against float64.
func TestScaledDotBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	x, s := f32s(r, "x", 3, 5000), input{"s", nil, []float32{2}}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }
	grads, _ := gradients(t, build, []int{1}, x, s)
	w := f32s(rand.New(rand.NewPCG(7, 7)), "test weights", 3, 5000).data.([]float32)
	var want float64
	for i, v := range x.data.([]float32) {
		want += float64(v) * float64(w[i])
	}
	near(t, "ds", grads[0], []float32{float32(want)}, 1e-5)
}
