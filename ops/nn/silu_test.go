package nn

import (
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
}
