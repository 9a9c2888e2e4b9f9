package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// An activation that takes the place of what it is applied to has the bits that it has beside it, by every backend and in both
// precisions, with a bias and without.
func TestActivationInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, backend := range []string{"auto", "builtin", "plain"} {
		for _, precision := range []string{"fp32", "bf16"} {
			e, err := New(Options{Backend: backend, Threads: 2, Precision: precision})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			for _, s := range [][3]int{{1, 1, 1}, {5, 33, 7}, {130, 200, 70}, {150, 400, 800}} {
				m, n, k := s[0], s[1], s[2]
				a, b, bias := make([]float32, m*k), make([]float32, n*k), make([]float32, n)
				for _, x := range [][]float32{a, b, bias} {
					for i := range x {
						x[i] = float32(r.NormFloat64())
					}
				}
				for _, bias := range [][]float32{nil, bias} {
					for _, by := range []vector.Activation{vector.ByGELU, vector.ByQuickGELU} {
						p := gemm.Product{TransB: true, M: m, N: n, K: k, Alpha: 1, A: gemm.Matrix{F32: a, LD: k}, B: gemm.Matrix{F32: b, LD: k}, C: make([]float32, m*n), LDC: n,
							BF16: precision == "bf16", Bias: bias, Activated: make([]float32, m*n), Activation: by}
						e.Multiply(&p)
						q := p
						q.C = make([]float32, m*n)
						q.Activated = q.C
						e.Multiply(&q)
						if !slices.Equal(p.Activated, q.C) {
							t.Errorf("%s of %dx%dx%d by %s, bias %t: other values in place", fmt.Sprint(by), m, n, k, e.Describe(), bias != nil)
						}
						if slices.Equal(p.C, q.C) {
							t.Errorf("%v changed nothing", by)
						}
					}
				}
			}
		}
	}
}
