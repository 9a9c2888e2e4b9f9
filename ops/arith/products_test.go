package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestSumProducts compares random shapes with the definition in float64 and with finite differences.
func TestSumProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	for _, s := range append(optest.RandomShapes(r, 12, 5, 4, 7), []int{3, 5, 1}, []int{2, 1, 6}, []int{1, 3, 40}) {
		rows, groups, n := s[0], s[1], s[2]
		x, y := optest.F32s(r, "x", rows, groups*n), optest.F32s(r, "y", rows, groups*n)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return SumProducts(ns[0], ns[1], n) }
		want := optest.Sums(rows, n, groups, func(i, j, k int) float64 {
			at := i*groups*n + k*n + j
			return float64(x.Floats()[at]) * float64(y.Floats()[at])
		})
		optest.Near(t, "sum products", optest.Eval(t, build, x, y).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 1e-3, x, y)
		if t.Failed() {
			t.Fatalf("%d rows of %d groups of %d", rows, groups, n)
		}
	}
}

// TestOuter does so for outer products.
func TestOuter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 32))
	for _, s := range append(optest.RandomShapes(r, 12, 5, 6, 7), []int{1, 1, 1}, []int{2, 1, 9}, []int{2, 9, 1}) {
		rows, m, n := s[0], s[1], s[2]
		x, y := optest.F32s(r, "x", rows, m), optest.F32s(r, "y", rows, n)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Outer(ns[0], ns[1]) }
		want := optest.Sums(rows, m*n, 1, func(i, j, _ int) float64 {
			return float64(x.Floats()[i*m+j/n]) * float64(y.Floats()[i*n+j%n])
		})
		optest.Near(t, "outer", optest.Eval(t, build, x, y).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 1e-3, x, y)
		if t.Failed() {
			t.Fatalf("%d rows of %d and %d", rows, m, n)
		}
	}
}
