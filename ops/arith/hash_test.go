package arith

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	h := optest.NewHashInputs()
	m, s, u := h.M, h.S, h.U
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"reduction": {
			func() *gorgonia.Node { return Sum(m) },
			func() *gorgonia.Node { return Mean(m) },
		},
		"spread": {optest.Variant(spread(tensor.Shape{2}, 1), s), optest.Variant(spread(tensor.Shape{2}, 2), s), optest.Variant(spread(tensor.Shape{1, 2}, 1), s)},
		"weighted sum": {
			func() *gorgonia.Node { return WeightedSum([]float32{1, 2}, s, u) },
			func() *gorgonia.Node { return WeightedSum([]float32{2, 1}, s, u) },
			func() *gorgonia.Node { return WeightedSum([]float32{1, 2.0000002}, s, u) },
		},
		"combine": {
			func() *gorgonia.Node { return Combine([]float32{1, 2}, m, m) },
			func() *gorgonia.Node { return Combine([]float32{2, 1}, m, m) },
			func() *gorgonia.Node { return Combine([]float32{1, 2.0000002}, m, m) },
		},
		"times":        {func() *gorgonia.Node { return Times(1, m) }, func() *gorgonia.Node { return Times(2, m) }},
		"sum products": {func() *gorgonia.Node { return SumProducts(m, m, 1) }, func() *gorgonia.Node { return SumProducts(m, m, 2) }, func() *gorgonia.Node { return Outer(m, m) }},
		"mul groups":   {optest.Variant(mulGroups(1), m, m), optest.Variant(mulGroups(2), m, m), optest.Variant(outerGradX(), m, m), optest.Variant(outerGradY(), m, m)},
		"two operands": {func() *gorgonia.Node { return Add(m, m) }, func() *gorgonia.Node { return MulScalar(m, s) }, func() *gorgonia.Node { return DivScalar(m, s) }, func() *gorgonia.Node { return MulExp(m, s) }},
	})
}
