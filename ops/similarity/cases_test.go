package similarity

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// productCases are the ops of this package with operands that are large enough for several threads.
func productCases() []optest.Case {
	r := rand.New(rand.NewPCG(12, 1))
	f, keys, queue := optest.F32s(r, "f", 63, 8), optest.F32s(r, "keys", 20, 8), optest.F32s(r, "queue", 50, 8)
	return []optest.Case{
		{Name: "similarity", Inputs: []optest.Input{f, keys, queue, optest.I32s("cols", []int32{60})}, WRT: []int{0, 1}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], ns[2], ns[3]) }},
	}
}
