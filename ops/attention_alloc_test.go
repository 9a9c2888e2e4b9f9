package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestAttentionAndLossAllocs checks that a run of forward and backward allocates
// nothing.
func TestAttentionAndLossAllocs(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	four := func(name string) input { return i32s(name, []int32{1, 0, 2, 1}, 4) }
	bits := i32s("bits", make([]int32, 4*2*3), 24)
	square, noise := f32s(r, "square", 4, 4), f32s(r, "noise", 4, 4)
	scalar := input{"scalar", nil, []float32{.5}}
	for _, c := range []struct {
		name   string
		wrt    int
		build  func(ns gorgonia.Nodes) *gorgonia.Node
		inputs []input
	}{
		{"self attention", 1, func(ns gorgonia.Nodes) *gorgonia.Node {
			return SelfAttention(ns[0], ns[1], ns[2], 3, 2, .5)
		}, []input{f32s(r, "qkv", 12, 12), four("lengths"), bits}},
		{"cross attention", 2, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossAttention(ns[0], ns[1], ns[2], ns[3], ns[4], 3, 5, 2, .5)
		}, []input{f32s(r, "q", 12, 4), f32s(r, "kv", 15, 8), four("index"), four("lengths"), bits}},
		{"similarity", 2, func(ns gorgonia.Nodes) *gorgonia.Node {
			return Similarity(ns[0], ns[1], ns[2], ns[3])
		}, []input{square, noise, f32s(r, "queue", 5, 4), i32s("cols", []int32{7})}},
		{"div scalar", 2, func(ns gorgonia.Nodes) *gorgonia.Node { return DivScalar(ns[0], ns[1]) }, []input{square, scalar}},
		{"mul scalar", 2, func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }, []input{square, scalar}},
		{"cross entropy, labels", 1, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Alpha: ns[2], Labels: ns[3]})
		}, []input{square, noise, scalar, four("labels")}},
		{"cross entropy, ids", 1, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2]})
		}, []input{square, four("rows"), four("columns")}},
		{"accuracy", 0, func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }, []input{square, four("labels")}},
		{"negatives", 0, func(ns gorgonia.Nodes) *gorgonia.Node {
			idx := SampleNegatives(ns[0], ns[1], ns[2], true)
			return ConcatInts(idx, NegativeLabels(idx), IotaInts(idx), GatherInts(idx, idx))
		}, []input{square, noise, four("ids")}},
	} {
		g, ns := nodes(c.inputs)
		out := c.build(ns)
		outputs := gorgonia.Nodes{out}
		if c.wrt > 0 {
			cost := out
			if len(out.Shape()) > 0 {
				cost = dotForTest(out, out)
			}
			grads, err := gorgonia.Grad(cost, ns[:c.wrt]...)
			if err != nil {
				t.Fatal(err)
			}
			outputs = append(outputs, grads...)
		}
		m := machine(t, g, ns, c.inputs, outputs...)
		run := func() {
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(10, run); n != 0 {
			t.Errorf("%s: %v allocations in a run, want none", c.name, n)
		}
	}
}
