package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestBounded: values at known places, and gradients.
func TestBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 41))
	at := optest.In("x", []int{5}, []float32{-4, -1, 0, 2, 7})
	for name, want := range map[string][]float32{
		"relu6": {0, 0, 0, 2, 6}, "sigmoid": {0.0179862, 0.2689414, 0.5, 0.8807971, 0.9990889},
		"hardsigmoid": {0, 1. / 3, 0.5, 5. / 6, 1}, "hardswish": {0, -1. / 3, 0, 5. / 3, 7},
	} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Bounded(ns[0], name) }
		optest.Near(t, name, optest.Eval(t, build, at).F32, want, 1e-6)
		x := optest.F32s(r, "x", 6, 9)
		for i := range x.Floats() {
			x.Floats()[i] = float32(i%13) - 6.3
		}
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
	optest.BuildError(t, "name", "activation must be relu6", func() {
		_, ns := optest.Nodes([]optest.Input{at})
		Bounded(ns[0], "relu7")
	})
}

func TestScaleSequences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 42))
	x, s := optest.F32s(r, "x", 6, 5), optest.F32s(r, "s", 2, 5)
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleSequences(ns[0], ns[1], 3) }
	var want []float32
	for i, v := range x.Floats() {
		want = append(want, v*s.Floats()[i/15*5+i%5])
	}
	optest.Near(t, "scale sequences", optest.Eval(t, build, x, s).F32, want, 0)
	optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, s)
}
