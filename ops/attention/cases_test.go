package attention

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// attentionCases are the ops of this package with operands that are large enough for several threads.
func attentionCases() []optest.Case {
	r := rand.New(rand.NewPCG(12, 1))
	const rows, l, heads, d = 7, 9, 2, 8
	q, kv, qkv := optest.F32s(r, "q", rows*l, d), optest.F32s(r, "kv", 3*l, 2*d), optest.F32s(r, "qkv", rows*l, 3*d)
	index, lengths := optest.I32s("index", []int32{0, 2, 1, 0, 2, 2, 0}, rows), optest.I32s("lengths", []int32{9, 1, 0, 3, 9, 8, 5}, rows)
	bits := optest.I32s("bits", optest.RandomInts(r, rows*heads*l, 1<<l), rows*heads*l)
	return []optest.Case{
		{Name: "affinity", Inputs: []optest.Input{q, optest.F32s(r, "k", rows*l, d), optest.F32s(r, "v", rows*l, 2*d), lengths}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Affinity(ns[0], ns[1], ns[2], ns[3], l) }},
		{Name: "self attention", Inputs: []optest.Input{qkv, lengths, bits}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SelfAttention(SelfArgs{QKV: ns[0], Lengths: ns[1], Bits: ns[2], Len: l, Heads: heads, Keep: .5})
			}},
		{Name: "self attention with dropout", Inputs: []optest.Input{qkv, optest.I32s("key", []int32{3, 4}, 2)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SelfAttention(SelfArgs{QKV: ns[0], Bits: nn.DropoutBits(ns[1], 1, rows*heads*l, l, .5), Len: l, Heads: heads, Keep: .5})
			}},
		{Name: "self attention with a bias", Inputs: []optest.Input{qkv, optest.F32s(r, "bias", heads, l, l), lengths}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SelfAttention(SelfArgs{QKV: ns[0], Bias: ns[1], Lengths: ns[2], Causal: true, Len: l, Heads: heads, Keep: 1})
			}},
		{Name: "cross attention with a bias", Inputs: []optest.Input{optest.F32s(r, "q", 3*l, d), kv, optest.F32s(r, "bias", heads, l, l)}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Bias: ns[2], QueryLen: l, KeyLen: l, Heads: heads, Keep: 1})
			}},
		{Name: "relative bias", Inputs: []optest.Input{optest.F32s(r, "table", 32, 5)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RelativeBias(ns[0], 90, 90, 128) }},
		{Name: "cross attention", Inputs: []optest.Input{q, kv, index, lengths, bits}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], Lengths: ns[3], Bits: ns[4], QueryLen: l, KeyLen: l, Heads: heads, Keep: .5})
			}},
		{Name: "cross attention of one query", Inputs: []optest.Input{optest.F32s(r, "q", 20, d), kv, optest.I32s("index", optest.RandomInts(r, 20, 3), 20), optest.I32s("lengths", optest.RandomInts(r, 20, 3), 20), optest.I32s("bits", optest.RandomInts(r, 20*heads, 1<<l), 20*heads)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], Lengths: ns[3], Bits: ns[4], QueryLen: 1, KeyLen: l, Heads: heads, Keep: .5})
			}},
	}
}
