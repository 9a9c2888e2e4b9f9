package pool

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// poolCases are the ops of this package with operands that are large enough for several threads.
func poolCases() []optest.Case {
	r := rand.New(rand.NewPCG(12, 2))
	f, keys, queue := optest.F32s(r, "f", 63, 8), optest.F32s(r, "keys", 20, 8), optest.F32s(r, "queue", 5000, 8)
	pointer, cols := optest.I32s("pointer", []int32{4990}), optest.I32s("cols", []int32{4995})
	return []optest.Case{
		{Name: "pool similarity", Inputs: []optest.Input{f, keys, queue, pointer, cols}, WRT: []int{0}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Similarity(ns[0], Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
			}},
		{Name: "pool columns", Inputs: []optest.Input{optest.F32s(r, "x", 12, 500), optest.I32s("pointer", []int32{490})},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Columns(ns[0], ns[1], 20) }},
	}
}
