package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGradientsAccumulate runs ops whose gradient is the second of two that one node has:
// it must be added to the first without an addition of its own.
func TestGradientsAccumulate(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	const rows, cols, keep = 70, 37, 0.75
	key := optest.I32s("key", []int32{12, -7}, 2)
	bits := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 3, rows, cols, keep) }, key)
	in := []optest.Input{
		optest.F32s(r, "x", rows, cols), optest.F32s(r, "h", rows, cols), optest.F32s(r, "gamma", cols), optest.F32s(r, "beta", cols),
		optest.I32s("bits", bits.I32, len(bits.I32)),
	}
	for name, f := range map[string]func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node{
		"layer norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			return LayerNorm(x, ns[2], ns[3], 1e-3)
		},
		"dropout": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node { return Dropout(x, ns[4], keep) },
		"add norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			_, norm := AddNorm(AddNormArgs{H: ns[1], X: x, Bits: ns[4], Gamma: ns[2], Beta: ns[3], Keep: keep, Eps: 1e-3})
			return norm
		},
	} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			x := arith.Add(ns[0], ns[1]) // not an input, whose gradients are outputs
			return arith.Add(f(x, ns), GELU(x))
		}
		optest.CheckGrad(t, build, []int{0}, 1e-3, 2e-2, in...)
		m, _ := optest.Case{Inputs: in, WRT: []int{0}, Build: build}.Compile(t, optest.Engine)
		for _, k := range m.Profile().Kinds {
			if k.Kind == "add gradients" && k.Nodes > 0 {
				t.Errorf("%s: %d additions of gradients", name, k.Nodes)
			}
		}
	}
}
