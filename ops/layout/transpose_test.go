package layout

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestTranspose(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Transpose(ns[0]) }
	got := optest.Eval(t, build, optest.In("x", tensor.Shape{2, 3}, []float32{1, 2, 3, 4, 5, 6}))
	optest.Near(t, "transpose of [1 2 3; 4 5 6]", got.F32, []float32{1, 4, 2, 5, 3, 6}, 0)
	if !got.Shape.Eq(tensor.Shape{3, 2}) {
		t.Errorf("shape %v, want (3, 2)", got.Shape)
	}
	r := rand.New(rand.NewPCG(31, 32))
	// Sides around the tiles' and matrices that go to several threads.
	for _, s := range append([][]int{{1, 1}, {1, 70}, {70, 1}, {31, 33}, {32, 32}, {257, 300}}, optest.RandomShapes(r, 6, 90, 90)...) {
		x := optest.F32s(r, "x", s...)
		want := make([]float32, s[0]*s[1])
		for i := range s[0] {
			for j := range s[1] {
				want[j*s[0]+i] = x.Floats()[i*s[1]+j]
			}
		}
		optest.Near(t, "transpose", optest.Eval(t, build, x).F32, want, 0)
		optest.Near(t, "twice", optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Transpose(Transpose(ns[0])) }, x).F32, x.Floats(), 0)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestTransposeErrors(t *testing.T) {
	for _, shape := range [][]int{{}, {3}, {2, 3, 4}} {
		_, ns := optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 2)), "x", shape...)})
		optest.BuildError(t, fmt.Sprint(shape), "", func() { Transpose(ns[0]) })
	}
}
