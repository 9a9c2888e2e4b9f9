package ops

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
)

// attentionCases are the rows of opCases for attention, similarities, losses and
// negatives.
func attentionCases() []opCase {
	r := rand.New(rand.NewPCG(12, 1))
	const rows, l, heads, d = 7, 9, 2, 8
	q, kv, qkv := f32s(r, "q", rows*l, d), f32s(r, "kv", 3*l, 2*d), f32s(r, "qkv", rows*l, 3*d)
	index, lengths := i32s("index", []int32{0, 2, 1, 0, 2, 2, 0}, rows), i32s("lengths", []int32{9, 1, 0, 3, 9, 8, 5}, rows)
	bits := i32s("bits", randomInts(r, rows*heads*l, 1<<l), rows*heads*l)
	logits, teacher, alpha := f32s(r, "logits", 40, 1500), f32s(r, "teacher", 40, 1500), input{"alpha", nil, []float32{.4}}
	labels, columns := i32s("labels", randomInts(r, 40, 1400), 40), i32s("columns", randomInts(r, 1500, 60), 1500)
	labels.data.([]int32)[3] = -100
	cols := i32s("cols", []int32{1400})
	square, noise, ids := f32s(r, "square", 50, 60), f32s(r, "noise", 50, 50), i32s("ids", randomInts(r, 50, 30), 50)
	return []opCase{
		{name: "self attention", inputs: []input{qkv, lengths, bits}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return SelfAttention(ns[0], ns[1], ns[2], l, heads, .5) }},
		{name: "self attention with dropout", inputs: []input{qkv, i32s("key", []int32{3, 4}, 2)}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SelfAttention(ns[0], nil, DropoutBits(ns[1], 1, rows*heads*l, l, .5), l, heads, .5)
			}},
		{name: "cross attention", inputs: []input{q, kv, index, lengths, bits}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(ns[0], ns[1], ns[2], ns[3], ns[4], l, l, heads, .5)
			}},
		{name: "cross attention of one query", inputs: []input{f32s(r, "q", 20, d), kv, i32s("index", randomInts(r, 20, 3), 20), i32s("lengths", randomInts(r, 20, 3), 20), i32s("bits", randomInts(r, 20*heads, 1<<l), 20*heads)}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(ns[0], ns[1], ns[2], ns[3], ns[4], 1, l, heads, .5)
			}},
		{name: "similarity", inputs: []input{q, f32s(r, "keys", 20, d), f32s(r, "queue", 50, d), i32s("cols", []int32{60})}, wrt: []int{0, 1}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], ns[2], ns[3]) }},
		{name: "div scalar", inputs: []input{logits, alpha}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return DivScalar(ns[0], ns[1]) }},
		{name: "mul scalar", inputs: []input{logits, alpha}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }},
		{name: "cross entropy of labels", inputs: []input{logits, teacher, alpha, labels, cols}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Alpha: ns[2], Labels: ns[3], Cols: ns[4]})
			}},
		{name: "cross entropy of ids", inputs: []input{logits, labels, columns}, wrt: []int{0},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2]})
			}},
		{name: "accuracy", inputs: []input{logits, labels}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }},
		{name: "negatives", inputs: []input{square, noise, ids},
			build: func(ns gorgonia.Nodes) *gorgonia.Node {
				idx := SampleNegatives(ns[0], ns[1], ns[2], true)
				return ConcatInts(idx, NegativeLabels(idx), IotaInts(idx), GatherInts(idx, idx))
			}},
		{name: "negative labels", inputs: []input{ids}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeLabels(ns[0]) }},
		{name: "iota ints", inputs: []input{ids}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return IotaInts(ns[0]) }},
		{name: "gather ints", inputs: []input{ids}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return GatherInts(ns[0], ns[0]) }},
	}
}
