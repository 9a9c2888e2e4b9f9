package layout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestConcatRows(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatRows(ns[0], ns[1]) }
	r := rand.New(rand.NewPCG(65, 66))
	// The last ones go to several threads, cut before, within and after the first matrix.
	for _, s := range [][3]int{{1, 1, 1}, {3, 2, 4}, {300, 7, 100}, {7, 300, 100}, {150, 150, 123}} {
		a, b := optest.F32s(r, "a", s[0], s[2]), optest.F32s(r, "b", s[1], s[2])
		optest.Near(t, "concat", optest.Eval(t, build, a, b).F32, slices.Concat(a.Floats(), b.Floats()), 0)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, a, b)
	}
	a, b := optest.F32s(r, "a", 2, 3, 2, 4), optest.F32s(r, "b", 1, 3, 2, 4) // images
	got := optest.Eval(t, build, a, b)
	optest.Near(t, "concat of images", got.F32, slices.Concat(a.Floats(), b.Floats()), 0)
	if !got.Shape.Eq(tensor.Shape{3, 3, 2, 4}) {
		t.Errorf("shape %v, want (3, 3, 2, 4)", got.Shape)
	}
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Reshape(ConcatRows(ns[0], ns[1]), 3, 24)
	}, []int{0, 1}, 1e-2, 1e-3, a, b)
}

// TestReshape: elements keep their order, the way back is the identity, and gradients of
// a norm within groups of a row are those of finite differences.
func TestReshape(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 68))
	x := optest.F32s(r, "x", 6, 8)
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Reshape(nn.GELU(ns[0]), 12, 4) }, x)
	optest.Near(t, "reshape", got.F32, optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return nn.GELU(ns[0]) }, x).F32, 0)
	if !got.Shape.Eq(tensor.Shape{12, 4}) {
		t.Errorf("shape %v, want (12, 4)", got.Shape)
	}
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Reshape(nn.L2Normalize(Reshape(ns[0], 12, 4), 1e-12), 6, 8)
	}, []int{0}, 1e-2, 2e-3, x)
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { // from three axes
		return nn.L2Normalize(Reshape(ns[0], 12, 4), 1e-12)
	}, []int{0}, 1e-2, 1e-3, optest.F32s(r, "x", 3, 2, 8))
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { // of a vector
		return nn.L2Normalize(Reshape(ns[0], 3, 4), 1e-12)
	}, []int{0}, 1e-2, 1e-3, optest.F32s(r, "x", 12))
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { return arith.Add(Reshape(ns[0], 8, 6), ns[1]) }, []int{0, 1}, 1e-2, 1e-3, x, optest.F32s(r, "y", 8, 6))
}

func TestRepeatFirst(t *testing.T) {
	for k, want := range [][]int32{{5, 6, 7, 8, 9, 10}, {5, 5, 6, 7, 8, 8, 9, 10}, {5, 5, 5, 6, 7, 8, 8, 8, 9, 10}} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return RepeatFirst(ns[0], 3, k) }, optest.I32s("x", []int32{5, 6, 7, 8, 9, 10}, 6))
		if !slices.Equal(got.I32, want) {
			t.Errorf("%d copies: got %v, want %v", k, got.I32, want)
		}
	}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return AddInt(ns[0], -3) }, optest.I32s("x", []int32{5, 0, -7}, 3))
	if want := []int32{2, -3, -10}; !slices.Equal(got.I32, want) {
		t.Errorf("added -3: got %v, want %v", got.I32, want)
	}
	got = optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return AtLeastInt(ns[0], 2) }, optest.I32s("x", []int32{5, 2, 1, -7}, 4))
	if want := []int32{5, 2, 2, 2}; !slices.Equal(got.I32, want) {
		t.Errorf("at least 2: got %v, want %v", got.I32, want)
	}
}
