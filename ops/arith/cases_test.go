package arith

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// arithCases are the ops of this package with operands that are large enough for several threads.
func arithCases() []optest.Case {
	r := rand.New(rand.NewPCG(11, 12))
	const rows, d = 120, 321
	x, y := optest.F32s(r, "x", rows, d), optest.F32s(r, "y", rows, d)
	return append(optest.ElementCases(elementOps()), []optest.Case{
		{Name: "sum", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Sum(ns[0]) }},
		{Name: "mean", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Mean(ns[0]) }},
		{Name: "weighted sum", Inputs: []optest.Input{x, y}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum([]float32{2, 3}, Sum(ns[0]), Mean(ns[1])) }},
		{Name: "sum products", Inputs: []optest.Input{x, y}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SumProducts(ns[0], ns[1], 107) }},
		{Name: "dot products of rows", Inputs: []optest.Input{x, y}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return SumProducts(ns[0], ns[1], 1) }},
		{Name: "outer", Inputs: []optest.Input{x, optest.F32s(r, "few", rows, 7)}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Outer(ns[0], ns[1]) }},
		{Name: "detach", Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Add(ns[0], op.Detach(ns[0])) }},
	}...)
}
