package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// productCase is a random product with its own operands.
type productCase struct {
	p          Product
	halfA      bool // operand given as bfloat16
	halfB      bool
	bias, gelu bool
}

func (g productCase) String() string {
	p := g.p
	return fmt.Sprintf("transA %v transB %v %dx%dx%d alpha %v beta %v lda %d ldb %d ldc %d bf16 %v given as bf16 %v %v bias %v gelu %v",
		p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.Beta, p.A.LD, p.B.LD, p.LDC, p.BF16, g.halfA, g.halfB, g.bias, g.gelu)
}

// operand returns rows of columns random values with a stride of ld, as float32
// and as the type asked for.
func operand(r *rand.Rand, rows, columns, pad int, half bool) Matrix {
	ld := columns + pad
	x := make([]float32, max(0, (rows-1)*ld+columns))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	if !half {
		return Matrix{F32: x, LD: ld}
	}
	h := make([]uint16, len(x))
	for i, v := range x {
		h[i] = halfOf(v)
	}
	return Matrix{BF16: h, LD: ld}
}

// halfOf rounds x to bfloat16, to nearest and ties to even; NaN stays NaN.
func halfOf(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16 | 0x40)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// newProductCase draws operands for g.p.
func newProductCase(r *rand.Rand, g productCase) productCase {
	p := &g.p
	rows, columns := p.storedA()
	p.A = operand(r, rows, columns, r.IntN(4), g.halfA)
	rows, columns = p.storedB()
	p.B = operand(r, rows, columns, r.IntN(4), g.halfB)
	c := operand(r, p.M, p.N, r.IntN(4), false)
	p.C, p.LDC = c.F32, c.LD
	if g.bias {
		p.Bias = operand(r, 1, p.N, 0, false).F32
	}
	if g.gelu {
		p.GELU = make([]float32, len(p.C))
	}
	return g
}

// value returns element i of x as the product reads it, in float64.
func value(x Matrix, i int, bf16 bool) float64 {
	switch {
	case x.BF16 != nil:
		return float64(math.Float32frombits(uint32(x.BF16[i]) << 16))
	case bf16:
		return float64(math.Float32frombits(uint32(halfOf(x.F32[i])) << 16))
	}
	return float64(x.F32[i])
}

// exact computes p in float64 and returns C before the GELU and the sum of the
// sizes of all terms of each element, which rounding errors are relative to.
func exact(p *Product) (c, size []float64) {
	c, size = make([]float64, len(p.C)), make([]float64, len(p.C))
	for i := range p.M {
		for j := range p.N {
			var s, abs float64
			for k := range p.K {
				x, y := i*p.A.LD+k, k*p.B.LD+j
				if p.TransA {
					x = k*p.A.LD + i
				}
				if p.TransB {
					y = j*p.B.LD + k
				}
				v := value(p.A, x, p.BF16) * value(p.B, y, p.BF16)
				s += v
				abs += math.Abs(v)
			}
			at := i*p.LDC + j
			s *= float64(p.Alpha)
			abs *= math.Abs(float64(p.Alpha))
			if p.Beta != 0 {
				s += float64(p.Beta) * float64(p.C[at])
				abs += math.Abs(float64(p.Beta) * float64(p.C[at]))
			}
			if p.Bias != nil {
				s += float64(p.Bias[j])
				abs += math.Abs(float64(p.Bias[j]))
			}
			c[at], size[at] = s, abs
		}
	}
	return c, size
}

// checkProduct computes g on all threads and on one and compares with the exact
// value. The products of bfloat16 are exact in float32, so that the error of both
// precisions is that of at most K+4 roundings of sums, each of half a unit of the
// last place (2^-24) of a value no larger than the sum of the sizes.
func checkProduct(t *testing.T, e *Engine, g productCase) {
	t.Helper()
	p := &g.p
	want, size := exact(p)
	before := append([]float32(nil), p.C...)
	run := func(multiply func(*Product), name string) {
		copy(p.C, before)
		if p.Beta == 0 { // must not be read
			for i := range p.M {
				for j := range p.N {
					p.C[i*p.LDC+j] = float32(math.NaN())
				}
			}
		}
		clear(p.GELU)
		multiply(p)
		for i := range p.C {
			if i%p.LDC >= p.N { // between the rows
				if p.C[i] != before[i] || p.GELU != nil && p.GELU[i] != 0 {
					t.Fatalf("%s %v: wrote outside row %d", name, g, i/p.LDC)
				}
				continue
			}
			if !(math.Abs(float64(p.C[i])-want[i]) <= float64(p.K+4)*size[i]*0x1p-24) {
				t.Fatalf("%s %v: row %d column %d: got %v, want %v", name, g, i/p.LDC, i%p.LDC, p.C[i], want[i])
			}
			if p.GELU != nil {
				x := float64(p.C[i])
				y := float32(x / 2 * math.Erfc(-x/math.Sqrt2))
				if d := math.Abs(float64(p.GELU[i] - y)); !(d <= 3e-7*max(1, math.Abs(x))) {
					t.Fatalf("%s %v: gelu at %d: got %v, want %v", name, g, i, p.GELU[i], y)
				}
			}
		}
	}
	run(e.Multiply, "Multiply")
	run(e.MultiplySerial, "MultiplySerial")
}

// randomCase draws everything but the sizes.
func randomCase(r *rand.Rand, m, n, k int) productCase {
	scalars := [][2]float32{{1, 0}, {1, 1}, {-0.5, 0.25}, {2, 0}, {0, 2}}[r.IntN(5)]
	return newProductCase(r, productCase{
		p: Product{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, M: m, N: n, K: k,
			Alpha: scalars[0], Beta: scalars[1], BF16: r.IntN(2) == 0},
		halfA: r.IntN(3) == 0, halfB: r.IntN(3) == 0, bias: r.IntN(2) == 0, gelu: r.IntN(2) == 0})
}

func TestProduct(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(21, 22))
		for range 250 {
			checkProduct(t, e, randomCase(r, r.IntN(71), r.IntN(71), r.IntN(71)))
		}
	})
}

// The edges of blocks: see the constants of tiledGemm and tiledBF16.
func TestProductBlockEdges(t *testing.T) {
	sizes := [][3]int{{14, 32, 384}, {15, 33, 385}, {113, 31, 383}, {112, 385, 5}, {1, 384, 769}, {127, 1, 768},
		{225, 65, 97}, {97, 769, 3}, {28, 40, 1537}, {300, 130, 64}}
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(23, 24))
		for _, s := range sizes {
			for range 2 {
				checkProduct(t, e, randomCase(r, s[0], s[1], s[2]))
			}
		}
	})
}
