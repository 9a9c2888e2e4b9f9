package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestSiLU(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return SiLU(ns[0]) }
	// By hand; far from 0 it is 0 or x itself.
	got := optest.Eval(t, build, optest.In("x", tensor.Shape{5}, []float32{-200, -1, 0, 1, 200})).F32
	optest.Near(t, "silu", got, []float32{0, -0.26894142, 0, 0.7310586, 200}, 1e-6)

	r := rand.New(rand.NewPCG(23, 24))
	for _, shape := range append([][]int{{}, {7, 3000}}, optest.RandomShapes(r, 4, 9, 40)...) {
		x := optest.F32s(r, "x", shape...)
		want := make([]float32, len(x.Floats()))
		for i, v := range x.Floats() {
			want[i] = float32(float64(v) / (1 + math.Exp(-float64(v))))
		}
		optest.Near(t, "silu", optest.Eval(t, build, x).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}
