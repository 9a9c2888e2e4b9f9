package contrast

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestStale: see optest.CheckStale.
func TestStale(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	logits := optest.F32s(r, "logits", 2, 6)
	ints := func(name string, x ...int32) optest.Input { return optest.I32s(name, x, len(x)) }
	count := func(n int32) optest.Input { return optest.I32s("count", []int32{n}) }
	optest.CheckStale(t, []optest.StaleCase{
		{Name: "labels", WRT: 1, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Labels: ns[1], Cols: ns[2]})
		},
			Fixed: []optest.Input{logits}, Before: []optest.Input{ints("labels", 1, 2), count(6)}, After: []optest.Input{ints("labels", -1, 2), count(4)}},
		{Name: "ids", WRT: 1, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossEntropy(CrossEntropyArgs{Logits: ns[0], RowIDs: ns[1], ColIDs: ns[2], Cols: ns[3]})
		},
			Fixed: []optest.Input{logits}, Before: []optest.Input{ints("rows", 1, 2), ints("cols", 1, 2, 1, 2, 1, 2), count(6)}, After: []optest.Input{ints("rows", 2, 3), ints("cols", 2, -100, 1, 2, 3, 3), count(4)}},
	})
}
