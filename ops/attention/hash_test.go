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
	})
	qkv, q, kv, four, other, bits := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5]
	optest.CheckIdentity(t, g, []func() *gorgonia.Node{
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
	})
}
