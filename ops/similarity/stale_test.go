package similarity

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestStale: see optest.CheckStale.
func TestStale(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	f := optest.F32s(r, "f", 2, 4)
	count := func(n int32) optest.Input { return optest.I32s("count", []int32{n}) }
	optest.CheckStale(t, []optest.StaleCase{
		{Name: "similarity", WRT: 2, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], ns[2], ns[3]) },
			Fixed: []optest.Input{f, optest.F32s(r, "keys", 3, 4), optest.F32s(r, "queue", 3, 4)}, Before: []optest.Input{count(6)}, After: []optest.Input{count(2)}},
	})
}
