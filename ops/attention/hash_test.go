package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestIdentity: calls that differ in one argument make different nodes, and equal calls the same
// one: Gorgonia merges nodes by hash.
func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	g, ns := optest.Nodes([]optest.Input{
		optest.F32s(r, "qkv", 12, 36), optest.F32s(r, "q", 12, 12), optest.F32s(r, "kv", 12, 24),
		optest.I32s("four", make([]int32, 4), 4), optest.I32s("other four", make([]int32, 4), 4), optest.I32s("bits", make([]int32, 24), 24),
		optest.F32s(r, "bias", 2, 3, 3), optest.F32s(r, "table", 8, 2),
	})
	qkv, q, kv, four, other, bits, bias, table := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7]
	optest.CheckIdentity(t, g, []func() *gorgonia.Node{
		func() *gorgonia.Node { return SelfAttention(SelfArgs{QKV: qkv, Len: 3, Heads: 2, Keep: 1}) },
		func() *gorgonia.Node { return SelfAttention(SelfArgs{QKV: qkv, Len: 4, Heads: 2, Keep: 1}) },
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Causal: true, Len: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Bias: bias, Len: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, Bias: bias, QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node { return Affinity(q, q, q, four, 3) },
		func() *gorgonia.Node { return Affinity(q, q, kv, four, 3) },
		func() *gorgonia.Node { return Affinity(q, q, q, other, 3) },
		func() *gorgonia.Node { return RelativeBias(table, 3, 3, 9) },
		func() *gorgonia.Node { return RelativeBias(table, 2, 3, 9) },
		func() *gorgonia.Node { return RelativeBias(table, 3, 2, 9) },
		func() *gorgonia.Node { return RelativeBias(table, 3, 3, 8) },
		optest.Variant(relativeGrad(8, 9), bias),
		optest.Variant(relativeGrad(12, 9), bias),
		optest.Variant(relativeGrad(8, 8), bias),
		func() *gorgonia.Node { return SelfAttention(SelfArgs{QKV: qkv, Len: 3, Heads: 3, Keep: 1}) },
		func() *gorgonia.Node { return SelfAttention(SelfArgs{QKV: qkv, Len: 3, Heads: 2, Keep: .5}) },
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Lengths: four, Len: 3, Heads: 2, Keep: .5})
		},
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Lengths: other, Len: 3, Heads: 2, Keep: .5})
		},
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Bits: bits, Len: 3, Heads: 2, Keep: .5})
		},
		func() *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: qkv, Bits: bits, Len: 3, Heads: 2, Keep: .25})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, Index: four, QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, Lengths: four, QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, Index: four, QueryLen: 3, KeyLen: 4, Heads: 2, Keep: 1})
		},
		func() *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: q, KV: kv, Index: four, QueryLen: 3, KeyLen: 3, Heads: 3, Keep: 1})
		},
	})
}
