package nn

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestTanh(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Tanh(ns[0]) }
	nan := float32(math.NaN())
	// By hand; far from 0 it is 1 or -1.
	got := optest.Eval(t, build, optest.In("x", tensor.Shape{5}, []float32{-200, -1, 0, 1, 200})).F32
	optest.Near(t, "tanh", got, []float32{-1, -0.7615942, 0, 0.7615942, 1}, 1e-6)
	if v := optest.Eval(t, build, optest.In("x", tensor.Shape{1}, []float32{nan})).F32[0]; v == v {
		t.Errorf("NaN became %v", v)
	}
}
