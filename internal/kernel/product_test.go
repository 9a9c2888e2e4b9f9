package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// checkProduct computes g on all threads and on one and compares with the exact
// value. The products of bfloat16 are exact in float32, so that the error of both
// precisions is that of at most K+4 roundings of sums, each of half a unit of the
// last place (2^-24) of a value no larger than the sum of the sizes.
func checkProduct(t *testing.T, e *Engine, g gemmtest.Case) {
	t.Helper()
	p := &g.P
	want, size := gemmtest.Exact(p)
	before := append([]float32(nil), p.C...)
	run := func(multiply func(*gemm.Product), name string) {
		copy(p.C, before)
		if p.Beta == 0 { // must not be read
			for i := range p.M {
				for j := range p.N {
					p.C[i*p.LDC+j] = float32(math.NaN())
				}
			}
		}
		clear(p.Activated)
		multiply(p)
		for i := range p.C {
			if i%p.LDC >= p.N { // between the rows
				if p.C[i] != before[i] || p.Activated != nil && p.Activated[i] != 0 {
					t.Fatalf("%s %v: wrote outside row %d", name, g, i/p.LDC)
				}
				continue
			}
			if !(math.Abs(float64(p.C[i])-want[i]) <= float64(p.K+4)*size[i]*0x1p-24) {
				t.Fatalf("%s %v: row %d column %d: got %v, want %v", name, g, i/p.LDC, i%p.LDC, p.C[i], want[i])
			}
			if p.Activated != nil {
				x := float64(p.C[i])
				y := activated(p.Activation, x)
				if d := math.Abs(float64(p.Activated[i] - y)); !(d <= 3e-7*max(1, math.Abs(x))) {
					t.Fatalf("%s %v: activation at %d: got %v, want %v", name, g, i, p.Activated[i], y)
				}
			}
		}
	}
	run(e.Multiply, "Multiply")
	run(e.MultiplySerial, "MultiplySerial")
}

func TestProduct(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(21, 22))
		for range 250 {
			checkProduct(t, e, gemmtest.RandomCase(r, r.IntN(71), r.IntN(71), r.IntN(71)))
		}
	})
}

// The edges of blocks: see the constants of Tiled and tiledBF16.
func TestProductBlockEdges(t *testing.T) {
	sizes := [][3]int{{14, 32, 384}, {15, 33, 385}, {113, 31, 383}, {112, 385, 5}, {1, 384, 769}, {127, 1, 768},
		{225, 65, 97}, {97, 769, 3}, {28, 40, 1537}, {300, 130, 64}, {30, 70, 256}, {15, 33, 257}, {120, 32, 513}}
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(23, 24))
		for _, s := range sizes {
			for range 2 {
				checkProduct(t, e, gemmtest.RandomCase(r, s[0], s[1], s[2]))
			}
		}
	})
}

// activated is an activation by its definition.
func activated(a vector.Activation, x float64) float32 {
	switch a {
	case vector.ByGELUTanh:
		return float32(x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))))
	case vector.ByQuickGELU:
		return float32(x / (1 + math.Exp(-1.702*x)))
	case vector.BySiLU:
		return float32(x / (1 + math.Exp(-x)))
	}
	return float32(x / 2 * math.Erfc(-x/math.Sqrt2))
}
