package arith

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestReduce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	shapes := [][]int{{}, {1}, {5}, {3, 4}, {90, 100}, {1, 4096}, {4097, 1}}
	for axes := range 5 {
		shapes = append(shapes, optest.RandomShapes(r, 3, []int{9, 7, 5, 6}[:axes]...)...)
	}
	for _, shape := range shapes {
		x := optest.F32s(r, "x", shape...)
		sum, size := 0.0, 0.0
		for _, v := range x.Floats() {
			sum += float64(v)
			size += math.Abs(float64(v))
		}
		n := float64(len(x.Floats()))
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Sum(ns[0]) }
		mean := func(ns gorgonia.Nodes) *gorgonia.Node { return Mean(ns[0]) }
		// The error is relative to the sum of the absolute values: terms may cancel.
		if got := float64(optest.Eval(t, build, x).F32[0]); !(math.Abs(got-sum) <= 1e-6*size) {
			t.Errorf("sum of %v: got %v, want %v", shape, got, sum)
		}
		if got := float64(optest.Eval(t, mean, x).F32[0]); !(math.Abs(got-sum/n) <= 1e-6*size/n) {
			t.Errorf("mean of %v: got %v, want %v", shape, got, sum/n)
		}
		// Both are linear, so a large step loses nothing to rounding.
		optest.CheckGrad(t, build, []int{0}, 1, 1e-2, x)
		optest.CheckGrad(t, mean, []int{0}, 1, 1e-2, x)
	}
}

func TestWeightedSum(t *testing.T) {
	x, y := optest.In("x", []int{}, []float32{3}), optest.In("y", []int{}, []float32{-2})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum([]float32{0.5, 2}, ns[0], ns[1]) }
	optest.Near(t, "weighted sum", optest.Eval(t, build, x, y).F32, []float32{-2.5}, 0) // 0.5*3 + 2*-2
	optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, y)
	weights := []float32{1, 1}
	late := func(ns gorgonia.Nodes) *gorgonia.Node {
		n := WeightedSum(weights, ns[0], ns[1])
		weights[0] = 9 // the caller's slice is not kept
		return n
	}
	optest.Near(t, "weighted sum", optest.Eval(t, late, x, y).F32, []float32{1}, 0)
}

// TestWeightedSumFuzz compares random numbers of operands with the definition.
func TestWeightedSumFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 16))
	for n := 1; n < 12; n++ {
		weights := optest.F32s(r, "weights", n).Floats()
		var in []optest.Input
		var wrt []int
		want := 0.0
		for i, w := range weights {
			in = append(in, optest.F32s(r, "x"+string(rune('a'+i))))
			wrt = append(wrt, i)
			want += float64(w) * float64(in[i].Floats()[0])
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum(weights, ns...) }
		if got := float64(optest.Eval(t, build, in...).F32[0]); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%d operands: got %v, want %v", n, got, want)
		}
		optest.CheckGrad(t, build, wrt, 1e-1, 1e-3, in...)
	}
}
