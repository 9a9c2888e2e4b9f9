package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestStale: see optest.CheckStale.
func TestStale(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	qkv, q, kv := optest.F32s(r, "qkv", 6, 12), optest.F32s(r, "q", 6, 4), optest.F32s(r, "kv", 6, 8)
	ints := func(name string, x ...int32) optest.Input { return optest.I32s(name, x, len(x)) }
	optest.CheckStale(t, []optest.StaleCase{
		{Name: "self attention", WRT: 1, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: ns[0], Lengths: ns[1], Len: 3, Heads: 2, Keep: 1})
		},
			Fixed: []optest.Input{qkv}, Before: []optest.Input{ints("lengths", 3, 3)}, After: []optest.Input{ints("lengths", 1, 0)}},
		{Name: "cross attention", WRT: 2, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], Lengths: ns[3], QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		},
			Fixed: []optest.Input{q, kv}, Before: []optest.Input{ints("index", 0, 1), ints("lengths", 3, 3)}, After: []optest.Input{ints("index", 0, 0), ints("lengths", 0, 2)}},
	})
}
