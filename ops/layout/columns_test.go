package layout

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestConcatColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatColumns(ns[0], ns[1]) }
	for _, s := range optest.RandomShapes(r, 8, 20, 9, 9) {
		a, b := optest.F32s(r, "a", s[0], s[1]), optest.F32s(r, "b", s[0], s[2])
		var want []float32
		for i := range s[0] {
			want = append(append(want, a.Floats()[i*s[1]:][:s[1]]...), b.Floats()[i*s[2]:][:s[2]]...)
		}
		optest.Near(t, "columns", optest.Eval(t, build, a, b).F32, want, 0)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, a, b)
	}
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "a", 3, 2), optest.F32s(r, "b", 2, 2)})
	optest.BuildError(t, "rows", "as many rows (got (3, 2) and (2, 2))", func() { ConcatColumns(ns[0], ns[1]) })
}

func TestColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 43))
	for _, s := range optest.RandomShapes(r, 8, 20, 9, 9) {
		x := optest.F32s(r, "x", s[0], s[1]+s[2])
		for _, from := range []int{0, s[1]} { // the last n columns, and the first ones
			n := s[2]
			var want []float32
			for i := range s[0] {
				want = append(want, x.Floats()[i*(s[1]+s[2])+from:][:n]...)
			}
			build := func(ns gorgonia.Nodes) *gorgonia.Node { return Columns(ns[0], from, n) }
			optest.Near(t, "columns", optest.Eval(t, build, x).F32, want, 0)
			optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
		}
	}
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 3, 4)})
	if Columns(ns[0], 0, 4) != ns[0] {
		t.Error("all columns are another node")
	}
	optest.BuildError(t, "columns", "columns [2, 5) (got (3, 4))", func() { Columns(ns[0], 2, 3) })
}
