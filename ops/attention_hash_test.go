package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestIdentity checks that calls which differ in one argument make different
// nodes, and equal calls the same one: Gorgonia merges nodes by hash.
func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	in := []input{
		f32s(r, "qkv", 12, 36), f32s(r, "q", 12, 12), f32s(r, "kv", 12, 24), f32s(r, "square", 4, 4), f32s(r, "noise", 4, 4),
		i32s("four", make([]int32, 4), 4), i32s("other four", make([]int32, 4), 4), i32s("bits", make([]int32, 24), 24),
		f32s(r, "alpha"), i32s("cols", []int32{4}), i32s("one", []int32{1}, 1),
	}
	g, ns := nodes(in)
	qkv, q, kv, square, noise, four, other, bits, alpha, cols := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7], ns[8], ns[9]
	ce := func(a CrossEntropyArgs) func() *gorgonia.Node {
		a.Logits = square
		return func() *gorgonia.Node { return CrossEntropy(a) }
	}
	builds := []func() *gorgonia.Node{
		func() *gorgonia.Node { return SelfAttention(qkv, nil, nil, 3, 2, 1) },
		func() *gorgonia.Node { return SelfAttention(qkv, nil, nil, 4, 2, 1) },
		func() *gorgonia.Node { return SelfAttention(qkv, nil, nil, 3, 3, 1) },
		func() *gorgonia.Node { return SelfAttention(qkv, nil, nil, 3, 2, .5) },
		func() *gorgonia.Node { return SelfAttention(qkv, four, nil, 3, 2, .5) },
		func() *gorgonia.Node { return SelfAttention(qkv, other, nil, 3, 2, .5) },
		func() *gorgonia.Node { return SelfAttention(qkv, nil, bits, 3, 2, .5) },
		func() *gorgonia.Node { return SelfAttention(qkv, nil, bits, 3, 2, .25) },
		func() *gorgonia.Node { return CrossAttention(q, kv, nil, nil, nil, 3, 3, 2, 1) },
		func() *gorgonia.Node { return CrossAttention(q, kv, four, nil, nil, 3, 3, 2, 1) },
		func() *gorgonia.Node { return CrossAttention(q, kv, nil, four, nil, 3, 3, 2, 1) },
		func() *gorgonia.Node { return CrossAttention(q, kv, four, nil, nil, 3, 4, 2, 1) },
		func() *gorgonia.Node { return CrossAttention(q, kv, four, nil, nil, 3, 3, 3, 1) },
		func() *gorgonia.Node { return Similarity(square, noise, nil, nil) },
		func() *gorgonia.Node { return Similarity(square, noise, noise, nil) },
		func() *gorgonia.Node { return Similarity(square, noise, nil, cols) },
		ce(CrossEntropyArgs{Labels: four}),
		ce(CrossEntropyArgs{Labels: other}),
		ce(CrossEntropyArgs{Labels: four, Cols: cols}),
		ce(CrossEntropyArgs{Labels: four, Teacher: noise, Alpha: alpha}),
		ce(CrossEntropyArgs{RowIDs: four, ColIDs: other}),
		ce(CrossEntropyArgs{RowIDs: other, ColIDs: four}),
		ce(CrossEntropyArgs{RowIDs: other, ColIDs: four, Teacher: noise, Alpha: alpha}),
		func() *gorgonia.Node { return Accuracy(square, four) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, nil, false) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, nil, true) },
		func() *gorgonia.Node { return SampleNegatives(square, noise, four, true) },
		func() *gorgonia.Node { return NegativeLabels(four) },
		func() *gorgonia.Node { return IotaInts(four) },
		func() *gorgonia.Node { return GatherInts(four, other) },
		func() *gorgonia.Node { return ConcatInts(four, other) },
		func() *gorgonia.Node { return MulScalar(square, alpha) },
		func() *gorgonia.Node { return DivScalar(square, alpha) },
	}
	made := map[int64]int{}
	for i, build := range builds {
		n := build()
		if j, ok := made[n.ID()]; ok {
			t.Errorf("calls %d and %d made one node", j, i)
		}
		made[n.ID()] = i
	}
	count := g.AllNodes().Len()
	for i, build := range builds {
		if j := made[build().ID()]; j != i {
			t.Errorf("call %d made another node the second time", i)
		}
	}
	if n := g.AllNodes().Len(); n != count {
		t.Errorf("repeated calls added %d nodes", n-count)
	}
}
