package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestGradientsAccumulate runs ops whose gradient is the second of two that one node has:
// it must be added to the first without an addition of its own.
func TestGradientsAccumulate(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	const rows, cols, keep = 70, 37, 0.75
	key := i32s("key", []int32{12, -7}, 2)
	bits := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 3, rows, cols, keep) }, key)
	in := []input{
		f32s(r, "x", rows, cols), f32s(r, "h", rows, cols), f32s(r, "gamma", cols), f32s(r, "beta", cols),
		i32s("bits", bits.I32, len(bits.I32)),
	}
	for name, f := range map[string]func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node{
		"layer norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			return LayerNorm(x, ns[2], ns[3], 1e-3)
		},
		"dropout": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node { return Dropout(x, ns[4], keep) },
		"add norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			_, norm := AddNorm(ns[1], x, ns[4], ns[2], ns[3], keep, 1e-3)
			return norm
		},
	} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			x := Add(ns[0], ns[1]) // not an input, whose gradients are outputs
			return Add(f(x, ns), GELU(x))
		}
		checkGrad(t, build, []int{0}, 1e-3, 2e-2, in...)
		m, _ := opCase{inputs: in, wrt: []int{0}, build: build}.compile(t, testEngine)
		for _, k := range m.Profile().Kinds {
			if k.Kind == "add gradients" && k.Nodes > 0 {
				t.Errorf("%s: %d additions of gradients", name, k.Nodes)
			}
		}
	}
}
