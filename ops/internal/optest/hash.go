package optest

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// CheckIdentity checks that every call makes a node of its own, and the same one when it
// is repeated.
func CheckIdentity(t *testing.T, g *gorgonia.ExprGraph, builds []func() *gorgonia.Node) {
	t.Helper()
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

// HashInputs are operands of many ops.
type HashInputs struct{ M, V, S, U, Key, Images, Bits, Narrow, Near *gorgonia.Node }

// NewHashInputs puts them into a fresh graph: m (12, 12), v (12), scalars s and u, key (2)
// int32, images (1, 3, 12, 12), bits (12) int32, narrow (12, 5), near (12, 3) int32.
func NewHashInputs() HashInputs {
	r := rand.New(rand.NewPCG(15, 16))
	in := []Input{
		F32s(r, "m", 12, 12), F32s(r, "v", 12), F32s(r, "s"), F32s(r, "u"),
		I32s("key", make([]int32, 2), 2), F32s(r, "images", 1, 3, 12, 12),
		I32s("bits", make([]int32, 12), 12), F32s(r, "narrow", 12, 5), I32s("near", make([]int32, 36), 12, 3),
	}
	_, ns := Nodes(in)
	return HashInputs{ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7], ns[8]}
}

// Variant returns a variant that applies an op.
func Variant(o *op.Op, in ...*gorgonia.Node) func() *gorgonia.Node {
	return func() *gorgonia.Node { return op.Apply(o, in...) }
}

// CheckHashes builds variants of ops that differ in one argument: within a group they must
// be different nodes with different hashes, and each built twice must be one node.
func CheckHashes(t *testing.T, groups map[string][]func() *gorgonia.Node) {
	t.Helper()
	for name, group := range groups {
		for i, build := range group {
			n := build()
			if build() != n {
				t.Errorf("%s: variant %d built twice is two nodes", name, i)
			}
			for j, other := range group[:i] {
				if o := other(); o == n || o.Op().Hashcode() == n.Op().Hashcode() {
					t.Errorf("%s: variants %d and %d are one node or have one hash", name, i, j)
				}
			}
		}
	}
}
