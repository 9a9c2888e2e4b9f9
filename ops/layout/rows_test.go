package layout

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestStridedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for _, s := range append([][]int{{0, 1, 0, 1, 1}, {0, 2, 0, 1, 5}, {40, 100, 1, 4, 40}}, optest.RandomShapes(r, 15, 6, 20, 5, 4, 8)...) {
		cols, start, stride, count := s[1], s[2], s[3], s[4]
		rows := start + (count-1)*stride + 1 + s[0]
		x := optest.F32s(r, "x", rows, cols)
		// Twice the rows: all rows of an input are the input itself, which is no op.
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			y := StridedRows(ns[0], start, stride, count)
			return arith.Add(y, y)
		}
		var want []float32
		for i := range count {
			for j := range cols {
				want = append(want, 2*x.Floats()[(start+i*stride)*cols+j])
			}
		}
		optest.Near(t, "strided rows", optest.Eval(t, build, x).F32, want, 0)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}
