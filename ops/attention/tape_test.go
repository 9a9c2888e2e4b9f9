package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestTapeMachine runs attention and cross-entropy, whose auxiliary results go
// from node to node beside Gorgonia's values, on Gorgonia's own machine.
func TestTapeMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	in := []optest.Input{
		optest.F32s(r, "q", 12, 4), optest.F32s(r, "kv", 15, 8), optest.I32s("index", []int32{0, 1, 2, 1}, 4),
		optest.I32s("labels", []int32{0, 1, 2, -1, 3, 0, 0, 1, 2, 3, 1, 0}, 12),
	}
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], QueryLen: 3, KeyLen: 5, Heads: 2, Keep: 1}), Labels: ns[3]})
	}
	want, _ := optest.Gradients(t, build, []int{0, 1}, in...)
	g, ns := optest.Nodes(in)
	grads := check.Get(gorgonia.Grad(build(ns), ns[0], ns[1]))(t)
	for i, n := range ns {
		check.OK(t, gorgonia.Let(n, tensor.New(tensor.WithShape(in[i].Shape...), tensor.WithBacking(in[i].Data))))
	}
	var values [2]gorgonia.Value
	gorgonia.Read(grads[0], &values[0])
	gorgonia.Read(grads[1], &values[1])
	m := gorgonia.NewTapeMachine(g)
	defer m.Close()
	check.OK(t, m.RunAll())
	optest.Near(t, "dq", values[0].Data().([]float32), want[0], 1e-5)
	optest.Near(t, "dkv", values[1].Data().([]float32), want[1], 1e-5)
}
