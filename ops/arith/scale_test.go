package arith

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestMulExp(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 4))
	in := []optest.Input{optest.F32s(r, "x", 90, 70), optest.In("t", nil, []float32{1.25})}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MulExp(ns[0], ns[1]) }
	want := make([]float32, 90*70)
	for i, v := range in[0].Data.([]float32) {
		want[i] = v * float32(math.Exp(1.25))
	}
	optest.Near(t, "mul exp", optest.Eval(t, build, in...).F32, want, 1e-6)
	optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, in...)
}

func TestScaling(t *testing.T) {
	div := func(ns gorgonia.Nodes) *gorgonia.Node { return DivScalar(ns[0], ns[1]) }
	mul := func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }
	x, s := optest.In("x", []int{2, 2}, []float32{1, -2, 3, 0}), optest.In("s", nil, []float32{4})
	optest.Near(t, "div", optest.Eval(t, div, x, s).F32, []float32{.25, -.5, .75, 0}, 0)
	optest.Near(t, "mul", optest.Eval(t, mul, x, s).F32, []float32{4, -8, 12, 0}, 0)
	r := rand.New(rand.NewPCG(5, 1))
	for range 10 {
		shape := make([]int, r.IntN(4))
		for i := range shape {
			shape[i] = 1 + r.IntN(20)
		}
		x := optest.F32s(r, "x", shape...)
		s := optest.In("s", nil, []float32{0.5 + r.Float32()})
		quotients, products := make([]float32, len(x.Floats())), make([]float32, len(x.Floats()))
		for i, v := range x.Floats() {
			quotients[i], products[i] = v/s.Floats()[0], v*s.Floats()[0]
		}
		optest.Near(t, "div", optest.Eval(t, div, x, s).F32, quotients, 2e-7)
		optest.Near(t, "mul", optest.Eval(t, mul, x, s).F32, products, 0)
		optest.CheckGrad(t, div, []int{0, 1}, 1e-2, 2e-3, x, s)
		optest.CheckGrad(t, mul, []int{0, 1}, 1e-2, 2e-3, x, s)
	}
	_, ns := optest.Nodes([]optest.Input{x, s})
	optest.BuildError(t, "scalar", "want a scalar", func() { DivScalar(ns[1], ns[0]) })
}

// TestScaledDotBlocks checks a sum of several blocks against float64.
func TestScaledDotBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	x, s := optest.F32s(r, "x", 3, 5000), optest.In("s", nil, []float32{2})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }
	grads, _ := optest.Gradients(t, build, []int{1}, x, s)
	w := optest.F32s(rand.New(rand.NewPCG(7, 7)), "test weights", 3, 5000).Data.([]float32)
	var want float64
	for i, v := range x.Data.([]float32) {
		want += float64(v) * float64(w[i])
	}
	optest.Near(t, "ds", grads[0], []float32{float32(want)}, 1e-5)
}
