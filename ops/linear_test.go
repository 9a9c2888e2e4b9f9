package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, s := range append([][]int{{1, 1, 1}, {3, 4, 5}, {7, 33, 2}, {300, 5, 3}}, randomShapes(r, 12, 40, 40, 40)...) {
		rows, inner, cols := s[0], s[1], s[2]
		in := []input{f32s(r, "x", rows, inner), f32s(r, "w", cols, inner), f32s(r, "b", cols)}
		x, w, b := in[0].floats(), in[1].floats(), in[2].floats()
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
		near(t, "linear", eval(t, build, in...).F32, want, 1e-5)
		checkGrad(t, build, wrt, 1e-2, 1e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: %d rows of %d to %d columns", i, rows, inner, cols)
		}
	}
}

// TestLinearPart compares parts of a linear layer with the columns of the whole, in
// value and gradient: three parts that cover w add up to its gradient.
func TestLinearPart(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, s := range randomShapes(r, 12, 30, 30, 30) {
		rows, inner, cols := s[0], s[1], s[2]+2
		from, n := 1+r.IntN(cols-1), 0
		n = 1 + r.IntN(cols-from)
		in := []input{f32s(r, "x", rows, inner), f32s(r, "w", cols, inner), f32s(r, "b", cols)}
		whole := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }, in...).F32
		part := func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], ns[2], from, n) }
		got := eval(t, part, in...).F32
		want := make([]float32, 0, rows*n)
		for i := range rows {
			want = append(want, whole[i*cols+from:][:n]...)
		}
		near(t, "part", got, want, 1e-6)
		checkGrad(t, part, []int{0, 1, 2}, 1e-2, 1e-3, in...)
		checkGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { return LinearPart(ns[0], ns[1], nil, from, n) }, []int{0, 1}, 1e-2, 1e-3, in[:2]...)
		if t.Failed() {
			t.Fatalf("%d rows of %d, columns %d to %d of %d", rows, inner, from, from+n, cols)
		}
	}
}

// TestLinearGELU compares the fused op with its two parts, in value and gradient.
func TestLinearGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, s := range append([][]int{{1, 1, 1}, {300, 40, 70}}, randomShapes(r, 10, 50, 50, 50)...) {
		in := []input{f32s(r, "x", s[0], s[1]), f32s(r, "w", s[2], s[1]), f32s(r, "b", s[2])}
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
			near(t, "linear gelu", eval(t, fused, in...).F32, eval(t, parts, in...).F32, 1e-6)
			got, _ := gradients(t, fused, wrt, in...)
			want, _ := gradients(t, parts, wrt, in...)
			for i := range want {
				near(t, "gradient", got[i], want[i], 1e-5)
			}
		}
		if t.Failed() {
			t.Fatalf("%d rows of %d to %d columns", s[0], s[1], s[2])
		}
	}
}
