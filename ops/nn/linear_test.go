package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, s := range append([][]int{{1, 1, 1}, {3, 4, 5}, {7, 33, 2}, {300, 5, 3}}, optest.RandomShapes(r, 12, 40, 40, 40)...) {
		rows, inner, cols := s[0], s[1], s[2]
		in := []optest.Input{optest.F32s(r, "x", rows, inner), optest.F32s(r, "w", cols, inner), optest.F32s(r, "b", cols)}
		x, w, b := in[0].Floats(), in[1].Floats(), in[2].Floats()
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }
		wrt := []int{0, 1, 2}
		if i%3 == 1 {
			clear(b)
			build = func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], nil) }
			wrt = wrt[:2]
		}
		want := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				v := float64(b[j])
				for k := range inner {
					v += float64(x[i*inner+k]) * float64(w[j*inner+k])
				}
				want[i*cols+j] = float32(v)
			}
		}
		optest.Near(t, "linear", optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, wrt, 1e-2, 1e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: %d rows of %d to %d columns", i, rows, inner, cols)
		}
	}
}

// TestLinearPart compares parts of a linear layer with the columns of the whole, in
// value and gradient: three parts that cover w add up to its gradient.
func TestLinearPart(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, s := range optest.RandomShapes(r, 12, 30, 30, 30) {
		rows, inner, cols := s[0], s[1], s[2]+2
		from, n := 1+r.IntN(cols-1), 0
		n = 1 + r.IntN(cols-from)
		in := []optest.Input{optest.F32s(r, "x", rows, inner), optest.F32s(r, "w", cols, inner), optest.F32s(r, "b", cols)}
		whole := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }, in...).F32
		part := func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], ns[2], from, n) }
		got := optest.Eval(t, part, in...).F32
		want := make([]float32, 0, rows*n)
		for i := range rows {
			want = append(want, whole[i*cols+from:][:n]...)
		}
		optest.Near(t, "part", got, want, 1e-6)
		optest.CheckGrad(t, part, []int{0, 1, 2}, 1e-2, 1e-3, in...)
		optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], nil, from, n) }, []int{0, 1}, 1e-2, 1e-3, in[:2]...)
		if t.Failed() {
			t.Fatalf("%d rows of %d, columns %d to %d of %d", rows, inner, from, from+n, cols)
		}
	}
}

// TestLinearGELU compares the fused op with its two parts, in value and gradient.
func TestLinearGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, s := range append([][]int{{1, 1, 1}, {300, 40, 70}}, optest.RandomShapes(r, 10, 50, 50, 50)...) {
		in := []optest.Input{optest.F32s(r, "x", s[0], s[1]), optest.F32s(r, "w", s[2], s[1]), optest.F32s(r, "b", s[2])}
		for _, bias := range []bool{true, false} {
			b := func(ns gorgonia.Nodes) *gorgonia.Node {
				if bias {
					return ns[2]
				}
				return nil
			}
			wrt := []int{0, 1, 2}
			if !bias {
				wrt = wrt[:2]
			}
			fused := func(ns gorgonia.Nodes) *gorgonia.Node { return LinearGELU(ns[0], ns[1], b(ns)) }
			parts := func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(Linear(ns[0], ns[1], b(ns))) }
			optest.Near(t, "linear gelu", optest.Eval(t, fused, in...).F32, optest.Eval(t, parts, in...).F32, 1e-6)
			got, _ := optest.Gradients(t, fused, wrt, in...)
			want, _ := optest.Gradients(t, parts, wrt, in...)
			for i := range want {
				optest.Near(t, "gradient", got[i], want[i], 1e-5)
			}
		}
		if t.Failed() {
			t.Fatalf("%d rows of %d to %d columns", s[0], s[1], s[2])
		}
	}
}
