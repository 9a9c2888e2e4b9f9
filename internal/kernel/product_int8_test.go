package kernel

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// int8Sizes are M, N and K at the edges of tiles, panels, words and blocks.
var int8Sizes = [][3]int{{1, 1, 1}, {1, 70, 31}, {2, 17, 2}, {3, 33, 5}, {14, 32, 16}, {15, 64, 17}, {37, 50, 20},
	{113, 97, 128}, {70, 801, 64}, {29, 130, 1537}, {130, 900, 515}}

// newInt8Case draws a linear layer: A as it is, B transposed, with a bias or without. Some rows of A are above or below 0,
// and in some both ends of the range round away from 0, to 256 codes and one.
func newInt8Case(r *rand.Rand, size [3]int, bias bool) gemm.Product {
	p := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransB: true, M: size[0], N: size[1], K: size[2], Alpha: 1},
		Bias: bias}).P
	for i := range p.M {
		row := p.A.F32[i*p.A.LD:][:p.K]
		switch i % 4 {
		case 1, 2:
			for k, v := range row {
				row[k] = float32(math.Copysign(float64(v), float64(3-2*(i%4))))
			}
		case 3:
			row[0], row[p.K-1] = 203, -307 // 101.5 and -153.5 codes
		}
	}
	return p
}

// int8ByDefinition is the product of gemm.Int8 by its definition, in plain loops over all of both matrices.
func int8ByDefinition(p *gemm.Product) []float32 {
	round := func(v, factor float32) int64 { return int64(math.RoundToEven(float64(v * factor))) }
	signed := func(x []float32) (c []int64, scale float32) {
		for _, v := range x {
			scale = max(scale, float32(math.Abs(float64(v))))
		}
		factor := 127 / scale
		for _, v := range x {
			c = append(c, round(v, factor))
		}
		return c, scale / 127
	}
	unsigned := func(x []float32) (c []int64, zero int64, scale float32) {
		high, low := max(0, slices.Max(x)), min(0, slices.Min(x))
		scale = high/255 - low/255
		zero = -round(low, 1/scale)
		for _, v := range x {
			c = append(c, min(255, round(v, 1/scale)+zero))
		}
		return c, zero, scale
	}
	columns, scales := make([][]int64, p.N), make([]float32, p.N)
	for j := range p.N {
		columns[j], scales[j] = signed(p.B.F32[j*p.B.LD:][:p.K])
	}
	out := slices.Clone(p.C)
	for i := range p.M {
		a, zero, byRow := unsigned(p.A.F32[i*p.A.LD:][:p.K])
		for j, b := range columns {
			var sum int64
			for k := range a {
				sum += (a[k] - zero) * b[k]
			}
			v := float32(sum) * scales[j] * byRow
			if p.Bias != nil {
				v += p.Bias[j]
			}
			out[i*p.LDC+j] = v
		}
	}
	return out
}

// A product in int8 has the bits of its definition with every instruction set, on any number of threads and by any part
// of the columns, and writes nothing else.
func TestInt8(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, threads := range []int{1, 2, 5} {
			e := int8Engine(t, Builtin, threads)
			r := rand.New(rand.NewPCG(81, 82))
			for _, size := range int8Sizes {
				p := newInt8Case(r, size, size[0]%2 == 0)
				want := int8ByDefinition(&p)
				p.Packed = e.PackWeights(&p)
				for name, multiply := range map[string]func(*gemm.Product){"Multiply": e.Multiply, "MultiplySerial": e.MultiplySerial} {
					q := p
					q.C = slices.Clone(p.C)
					multiply(&q)
					if !slices.Equal(q.C, want) {
						t.Fatalf("%s %v on %d threads: other bits than those of the definition", name, size, threads)
					}
				}
			}
		}
	})
}

func int8Engine(t testing.TB, backend string, threads int) *Engine {
	t.Helper()
	e, err := New(Options{Backend: backend, Threads: threads, Precision: "int8"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// bitsOfInt8 is the checksum of products in int8, the same with all instruction sets of all processors.
const bitsOfInt8 = 0xe83cd1b9c318957b

func TestSameBitsInt8(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, backend := range []string{Builtin, Plain} {
			e, h := int8Engine(t, backend, 2), fnv.New64a()
			r := rand.New(rand.NewPCG(83, 84))
			for _, size := range int8Sizes {
				p := newInt8Case(r, size, true)
				p.Packed = e.PackWeights(&p)
				e.Multiply(&p)
				fmt.Fprint(h, checksum(p.C))
			}
			if got := h.Sum64(); got != bitsOfInt8 {
				t.Errorf("%s: checksum %#x, want %#x", backend, got, uint64(bitsOfInt8))
			}
		}
	})
}

// Extreme operands: the largest sums of the most terms, rows and columns of zeros, of tiny values, and of NaN and
// infinity, whose results are NaN and which change no others.
func TestInt8Extremes(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		e := int8Engine(t, Builtin, 1)
		for _, n := range []int{3, 24, gemm.MostInt8} {
			p := gemm.Product{TransB: true, M: 5, N: 4, K: n, Alpha: 1, A: gemm.Matrix{F32: make([]float32, 5*n), LD: n},
				B: gemm.Matrix{F32: make([]float32, 4*n), LD: n}, C: make([]float32, 5*4), LDC: 4}
			vector.Fill(p.A.F32, 2)
			vector.Fill(p.B.F32, 3)
			vector.Fill(p.A.F32[n:2*n], 0)
			vector.Fill(p.A.F32[2*n:3*n], 1e-38)
			p.A.F32[3*n+n/2], p.A.F32[5*n-1] = kerneltest.NaN, -kerneltest.Inf
			vector.Fill(p.B.F32[n:2*n], -3)
			clear(p.B.F32[2*n : 3*n])
			p.B.F32[3*n] = kerneltest.Inf
			p.Packed = e.PackWeights(&p)
			e.Multiply(&p)
			nan, whole := kerneltest.NaN, float32(6*n)
			want := []float32{whole, -whole, 0, nan, 0, 0, 0, nan, 0, 0, 0, nan, nan, nan, nan, nan, nan, nan, nan, nan}
			for i, v := range p.C {
				if math.IsNaN(float64(want[i])) != math.IsNaN(float64(v)) || math.Abs(float64(v-want[i])) > 1e-6*float64(whole) {
					t.Errorf("K %d: result %d is %v, want %v", n, i, v, want[i])
				}
			}
		}
	})
}

// What follows a product in int8 is what follows others.
func TestInt8Follows(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		e := int8Engine(t, Builtin, 2)
		r := rand.New(rand.NewPCG(85, 86))
		for _, size := range int8Sizes {
			p := newInt8Case(r, size, true)
			p.Packed = e.PackWeights(&p)
			e.Multiply(&p)
			for of := vector.ByGELU; of <= vector.BySiLU; of++ {
				want := make([]float32, p.N)
				apart, inPlace := p, p
				apart.C, apart.Activated, apart.Activation = make([]float32, len(p.C)), make([]float32, len(p.C)), of
				inPlace.C, inPlace.Activation = make([]float32, len(p.C)), of
				inPlace.Activated = inPlace.C
				e.Multiply(&apart)
				e.Multiply(&inPlace)
				for i := range p.M {
					row := func(x []float32) []float32 { return x[i*p.LDC:][:p.N] }
					of.Apply(want, row(p.C))
					for j, v := range want {
						if row(apart.C)[j] != row(p.C)[j] || math.Abs(float64(row(apart.Activated)[j]-v)) > 1e-6 ||
							math.Abs(float64(row(inPlace.C)[j]-v)) > 1e-6 {
							t.Fatalf("%v %v: row %d column %d", of, size, i, j)
						}
					}
				}
			}
		}
	})
}

// BenchmarkInt8 gives GOP/s of linear layers of encoders by packed weights, in float32, bfloat16 and int8.
func BenchmarkInt8(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, s := range [][3]int{{16, 384, 384}, {1280, 384, 384}, {1280, 1536, 384}, {1280, 384, 1536}, {1576, 768, 768}, {1576, 3072, 768}, {1576, 768, 3072}} {
		for _, precision := range []string{"fp32", "bf16", "int8"} {
			e, err := New(Options{Precision: precision})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(e.Close)
			p := newInt8Case(r, s, true)
			p.BF16 = e.BF16()
			p.Packed = e.PackWeights(&p)
			b.Run(fmt.Sprintf("%s/%dx%dx%d", precision, s[0], s[1], s[2]), func(b *testing.B) {
				b.ReportMetric(2e-9*float64(s[0]*s[1]*s[2])/kerneltest.Best(func() { e.Multiply(&p) }), "GOP/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
