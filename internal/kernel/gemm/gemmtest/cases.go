package gemmtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Shapes are the products of training steps: linear layers forward (NT),
// their input gradients (NN) and weight gradients (TN), and attention heads.
var Shapes = []struct {
	Name           string
	TransA, TransB bool
	M, N, K        int
	Serial         bool
}{
	{"NN", false, false, 1576, 768, 768, false},
	{"NT", false, true, 1576, 768, 768, false},
	{"NT", false, true, 2048, 1536, 768, false},
	{"NT", false, true, 2080, 1536, 384, false},
	{"NT", false, true, 2056, 3072, 768, false},
	{"NN", false, false, 2056, 768, 3072, false},
	{"NN", false, false, 2080, 384, 1536, false},
	{"TN", true, false, 384, 384, 2080, false},
	{"TN", true, false, 1536, 384, 3840, false},
	{"TN", true, false, 3072, 768, 2056, false},
	{"NT", false, true, 32, 65568, 256, false},
	{"NT", false, true, 65, 65, 64, true},
	{"NN", false, false, 65, 64, 65, true},
	{"TN", true, false, 65, 64, 65, true},
	{"NT", false, true, 30, 65, 64, true},
	{"NT", false, true, 257, 257, 64, true},
	{"NN", false, false, 257, 64, 257, true},
}

// Case is a random product with its own operands.
type Case struct {
	P          gemm.Product
	HalfA      bool // operand given as bfloat16
	HalfB      bool
	Bias, Gelu bool
}

// String names the case by its form and sizes.
func (g Case) String() string {
	p := g.P
	return fmt.Sprintf("transA %v transB %v %dx%dx%d alpha %v beta %v lda %d ldb %d ldc %d bf16 %v given as bf16 %v %v bias %v gelu %v",
		p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.Beta, p.A.LD, p.B.LD, p.LDC, p.BF16, g.HalfA, g.HalfB, g.Bias,
		g.Gelu)
}

// operand returns rows of columns random values with a stride of ld, as float32
// and as the type asked for.
func operand(r *rand.Rand, rows, columns, pad int, half bool) gemm.Matrix {
	ld := columns + pad
	x := make([]float32, max(0, (rows-1)*ld+columns))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	if !half {
		return gemm.Matrix{F32: x, LD: ld}
	}
	h := make([]uint16, len(x))
	for i, v := range x {
		h[i] = Half(v)
	}
	return gemm.Matrix{BF16: h, LD: ld}
}

// Half rounds x to bfloat16, to nearest and ties to even; NaN stays NaN.
func Half(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16 | 0x40)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// NewCase draws operands for g.p.
func NewCase(r *rand.Rand, g Case) Case {
	p := &g.P
	rows, columns := p.StoredA()
	p.A = operand(r, rows, columns, r.IntN(4), g.HalfA)
	rows, columns = p.StoredB()
	p.B = operand(r, rows, columns, r.IntN(4), g.HalfB)
	c := operand(r, p.M, p.N, r.IntN(4), false)
	p.C, p.LDC = c.F32, c.LD
	if g.Bias {
		p.Bias = operand(r, 1, p.N, 0, false).F32
	}
	if g.Gelu {
		p.Activated = make([]float32, len(p.C))
		p.Activation = vector.Activation(1 + (p.M+p.N)%4)
	}
	return g
}

// value returns element i of x as the product reads it, in float64.
func value(x gemm.Matrix, i int, bf16 bool) float64 {
	switch {
	case x.BF16 != nil:
		return float64(math.Float32frombits(uint32(x.BF16[i]) << 16))
	case bf16:
		return float64(math.Float32frombits(uint32(Half(x.F32[i])) << 16))
	}
	return float64(x.F32[i])
}

// Exact computes p in float64 and returns C before the activation and the sum of the
// sizes of all terms of each element, which rounding errors are relative to.
func Exact(p *gemm.Product) (c, size []float64) {
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

// RandomCase draws everything but the sizes.
func RandomCase(r *rand.Rand, m, n, k int) Case {
	scalars := [][2]float32{{1, 0}, {1, 1}, {-0.5, 0.25}, {2, 0}, {0, 2}}[r.IntN(5)]
	return NewCase(r, Case{
		P: gemm.Product{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, M: m, N: n, K: k,
			Alpha: scalars[0], Beta: scalars[1], BF16: r.IntN(2) == 0},
		HalfA: r.IntN(3) == 0, HalfB: r.IntN(3) == 0, Bias: r.IntN(2) == 0, Gelu: r.IntN(2) == 0})
}
