package ops_test

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// TestBF16 runs linear and similarity with an engine that multiplies in bfloat16, with
// and without a bfloat16 copy of the weights, and compares outputs and gradients with
// sums over operands rounded here. The tolerance is that of sums in float32: operands
// that were not rounded would be off by 100 times as much.
func TestBF16(t *testing.T) {
	e := check.Get(kernel.New(kernel.Options{Threads: 2, Precision: "bf16"}))(t)
	defer e.Close()
	r := rand.New(rand.NewPCG(4, 1))
	const rows, inner, cols = 150, 130, 70
	x, w := optest.F32s(r, "x", rows, inner), optest.F32s(r, "w", cols, inner)
	for name, build := range map[string]func(ns gorgonia.Nodes) *gorgonia.Node{
		"linear":     func(ns gorgonia.Nodes) *gorgonia.Node { return nn.Linear(ns[0], ns[1], nil) },
		"similarity": func(ns gorgonia.Nodes) *gorgonia.Node { return similarity.Similarity(ns[0], ns[1], nil, nil) },
	} {
		dy := optest.F32s(r, "dy", rows, cols)
		g, ns := optest.Nodes([]optest.Input{x, w, dy})
		out := build(ns)
		grads, err := gorgonia.Grad(optest.Dot(out, ns[2]), ns[0], ns[1])
		if err != nil {
			t.Fatal(err)
		}
		m, err := exec.Compile(g, exec.Config{Engine: e, Outputs: append(gorgonia.Nodes{out}, grads...)})
		if err != nil {
			t.Fatal(err)
		}
		for i, in := range []optest.Input{x, w, dy} {
			if err := m.SetInput(ns[i], in.Data); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		xs, ws, ds := optest.Rounded(x.Floats()), optest.Rounded(w.Floats()), optest.Rounded(dy.Floats())
		for i, want := range [][]float32{
			optest.Sums(rows, cols, inner, func(i, j, k int) float64 { return xs[i*inner+k] * ws[j*inner+k] }),
			optest.Sums(rows, inner, cols, func(i, j, k int) float64 { return ds[i*cols+k] * ws[k*inner+j] }),
			optest.Sums(cols, inner, rows, func(i, j, k int) float64 { return ds[k*cols+i] * xs[k*inner+j] }),
		} {
			a, err := m.Value(append(gorgonia.Nodes{out}, grads...)[i])
			if err != nil {
				t.Fatal(err)
			}
			optest.Near(t, name, a.F32, want, 2e-5)
		}
	}
}
