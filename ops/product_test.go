package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// TestBF16 runs linear and similarity with an engine that multiplies in bfloat16, with
// and without a bfloat16 copy of the weights, and compares outputs and gradients with
// sums over operands rounded here. The tolerance is that of sums in float32: operands
// that were not rounded would be off by 100 times as much.
func TestBF16(t *testing.T) {
	e, err := kernel.New(kernel.Options{Threads: 2, Precision: "bf16"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := rand.New(rand.NewPCG(4, 1))
	const rows, inner, cols = 150, 130, 70
	x, w := f32s(r, "x", rows, inner), f32s(r, "w", cols, inner)
	shadow := make([]uint16, cols*inner)
	kernel.ToBF16(shadow, w.floats())
	for name, build := range map[string]func(ns gorgonia.Nodes) *gorgonia.Node{
		"linear":     func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], nil) },
		"similarity": func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], nil, nil) },
	} {
		for _, copied := range []bool{false, true} {
			dy := f32s(r, "dy", rows, cols)
			g, ns := nodes([]input{x, w, dy})
			out := build(ns)
			grads, err := gorgonia.Grad(dotForTest(out, ns[2]), ns[0], ns[1])
			if err != nil {
				t.Fatal(err)
			}
			m, err := exec.Compile(g, exec.Config{Engine: e, Outputs: append(gorgonia.Nodes{out}, grads...)})
			if err != nil {
				t.Fatal(err)
			}
			for i, in := range []input{x, w, dy} {
				if err := m.SetInput(ns[i], in.data); err != nil {
					t.Fatal(err)
				}
			}
			if copied {
				if err := m.SetShadow(ns[1], shadow); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			xs, ws, ds := rounded(x.floats()), rounded(w.floats()), rounded(dy.floats())
			for i, want := range [][]float32{
				product(rows, cols, inner, func(i, j, k int) float64 { return xs[i*inner+k] * ws[j*inner+k] }),
				product(rows, inner, cols, func(i, j, k int) float64 { return ds[i*cols+k] * ws[k*inner+j] }),
				product(cols, inner, rows, func(i, j, k int) float64 { return ds[k*cols+i] * xs[k*inner+j] }),
			} {
				a, err := m.Value(append(gorgonia.Nodes{out}, grads...)[i])
				if err != nil {
					t.Fatal(err)
				}
				near(t, name, a.F32, want, 2e-5)
			}
		}
	}
}

// rounded returns x rounded to bfloat16, to nearest and ties to even.
func rounded(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		b := math.Float32bits(v)
		b += 0x7fff + b>>16&1
		out[i] = float64(math.Float32frombits(b &^ 0xffff))
	}
	return out
}

// product returns sums over k of f (m, n).
func product(m, n, k int, f func(i, j, k int) float64) []float32 {
	out := make([]float32, m*n)
	for i := range m {
		for j := range n {
			var s float64
			for p := range k {
				s += f(i, j, p)
			}
			out[i*n+j] = float32(s)
		}
	}
	return out
}
