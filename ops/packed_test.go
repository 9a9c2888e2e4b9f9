package ops_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestPacked: a linear layer, whole or in part, by packed weights has the bits of one by the weights, and it does read them: of
// weights twice as large, it gives twice as much.
func TestPacked(t *testing.T) {
	const rows, inner, cols, from = 90, 130, 200, 64
	for _, precision := range []string{"fp32", "bf16"} {
		e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r := rand.New(rand.NewPCG(4, 2))
		x, w := optest.F32s(r, "x", rows, inner), optest.F32s(r, "w", cols, inner)
		g, ns := optest.Nodes([]optest.Input{x, w})
		outs := gorgonia.Nodes{nn.Linear(ns[0], ns[1], nil), nn.LinearPart(ns[0], ns[1], nil, from, 70)}
		m, err := exec.Compile(g, exec.Config{Engine: e, Outputs: outs})
		if err != nil {
			t.Fatal(err)
		}
		for i, in := range []optest.Input{x, w} {
			if err := m.SetInput(ns[i], in.Data); err != nil {
				t.Fatal(err)
			}
		}
		run := func() (out [][]float32) {
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			for _, n := range outs {
				v, err := m.Value(n)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, slices.Clone(v.F32))
			}
			return out
		}
		want := run()
		p := gemm.Product{TransB: true, M: rows, N: cols, K: inner, Alpha: 1, BF16: e.BF16(), B: gemm.Matrix{F32: slices.Clone(w.Floats()), LD: inner}}
		p.Packed = e.PackWeights(&p)
		if p.Packed == nil {
			t.Logf("%s: no assembly that takes packed weights", e.Describe())
			continue
		}
		if err := m.SetPacked(ns[1], p.Packed); err != nil {
			t.Fatal(err)
		}
		for i, got := range run() {
			if !slices.Equal(got, want[i]) {
				t.Errorf("%s: output %d has other bits by packed weights", precision, i)
			}
		}
		for i := range p.B.F32 {
			p.B.F32[i] *= 2
		}
		e.RepackWeights(&p)
		for i, got := range run() {
			for j := range got {
				if got[j] != 2*want[i][j] {
					t.Fatalf("%s: output %d, element %d: %v by weights twice as large, want %v", precision, i, j, got[j], 2*want[i][j])
				}
			}
		}
		if err := m.SetPacked(ns[1], nil); err != nil || !slices.Equal(run()[0], want[0]) {
			t.Errorf("%s: packed weights are still used after they were taken away (%v)", precision, err)
		}
		if err := m.SetPacked(ns[0], p.Packed); err == nil || !strings.Contains(err.Error(), "input x has shape (90, 130), what it was packed as (200, 130)") {
			t.Errorf("weights of another matrix: %v", err)
		}
	}
}
