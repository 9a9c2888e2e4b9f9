package similarity

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestRowProducts compares products of rows with their definition, and gradients with finite differences.
func TestRowProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 1))
	for _, s := range optest.RandomShapes(r, 12, 6, 5, 9) {
		b, l, c := s[0], s[1], s[2]
		x, y := optest.F32s(r, "x", b*l, c), optest.F32s(r, "y", b, c)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return RowProducts(ns[0], ns[1]) }
		want := optest.Sums(b*l, 1, c, func(i, _, k int) float64 {
			return float64(x.Floats()[i*c+k]) * float64(y.Floats()[i/l*c+k])
		})
		optest.Near(t, "products", optest.Eval(t, build, x, y).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-2, x, y)
	}
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "six", 6, 4), optest.F32s(r, "four", 4, 4), optest.F32s(r, "narrow", 6, 3), optest.F32s(r, "flat", 6)})
	const want = "want x (B*L, C) and y (B, C)"
	optest.BuildError(t, "rows", want, func() { RowProducts(ns[0], ns[1]) })
	optest.BuildError(t, "channels", want, func() { RowProducts(ns[0], ns[2]) })
	optest.BuildError(t, "axes", want, func() { RowProducts(ns[0], ns[3]) })
}

// rowCases are those of this file with operands that are large enough for several threads.
func rowCases() []optest.Case {
	r := rand.New(rand.NewPCG(83, 2))
	return []optest.Case{{Name: "row products", Inputs: []optest.Input{optest.F32s(r, "x", 1200, 24), optest.F32s(r, "y", 300, 24)}, WRT: []int{0, 1},
		Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RowProducts(ns[0], ns[1]) }}}
}
