package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// eachBackend runs f on an engine for each backend and each level of the built-in kernels, on 1 and 3 threads.
func eachBackend(t *testing.T, f func(t *testing.T, e *Engine)) {
	for _, backend := range []string{Auto, Builtin, Plain} {
		levels := []string{""}
		if backend == Builtin {
			levels = []string{cpu.AVX512, cpu.AVX2, cpu.Plain}
			if cpu.SetLevel(""); cpu.HasAMX {
				levels = append(levels, cpu.AMX)
			}
		}
		for _, level := range levels {
			for _, threads := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s%s/%d", backend, level, threads), func(t *testing.T) {
					cpu.SetLevel(level)
					defer cpu.SetLevel("")
					e, err := New(Options{Backend: backend, Threads: threads})
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					f(t, e)
				})
			}
		}
	}
}

// product of an oracle in float64: op(A) op(B) term by term as Engine.Gemm says.
func oracle(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) []float64 {
	out := make([]float64, len(c))
	for i := range c {
		out[i] = float64(c[i])
	}
	for i := range m {
		for j := range n {
			var s float64
			for p := range k {
				x, y := i*lda+p, p*ldb+j
				if transA {
					x = p*lda + i
				}
				if transB {
					y = j*ldb + p
				}
				s += float64(a[x]) * float64(b[y])
			}
			s *= float64(alpha)
			if beta != 0 {
				s += float64(beta) * float64(c[i*ldc+j])
			}
			out[i*ldc+j] = s
		}
	}
	return out
}

type gemmCase struct {
	transA, transB bool
	m, n, k        int
	alpha, beta    float32
	pad            [3]int // strides beyond the row length
}

func (g gemmCase) operands(seed uint32) (a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	ra, ca, rb, cb := g.m, g.k, g.k, g.n
	if g.transA {
		ra, ca = ca, ra
	}
	if g.transB {
		rb, cb = cb, rb
	}
	lda, ldb, ldc = ca+g.pad[0], cb+g.pad[1], g.n+g.pad[2]
	size := func(rows, columns, ld int) int {
		if rows == 0 || columns == 0 {
			return 0
		}
		return (rows-1)*ld + columns // the last row needs no padding
	}
	return gemm.Values(size(ra, ca, lda), seed), lda, gemm.Values(size(rb, cb, ldb), seed+1), ldb,
		gemm.Values(size(g.m, g.n, ldc), seed+2), ldc
}

func checkGemm(t *testing.T, e *Engine, g gemmCase) {
	t.Helper()
	a, lda, b, ldb, c, ldc := g.operands(uint32(g.m*31 + g.n*7 + g.k))
	want := oracle(g.transA, g.transB, g.m, g.n, g.k, g.alpha, a, lda, b, ldb, g.beta, c, ldc)
	if g.beta == 0 { // must not be read
		for i := range g.m {
			for j := range g.n {
				c[i*ldc+j] = float32(math.NaN())
			}
		}
	}
	serial := append([]float32(nil), c...)
	e.Gemm(g.transA, g.transB, g.m, g.n, g.k, g.alpha, a, lda, b, ldb, g.beta, c, ldc)
	e.GemmSerial(g.transA, g.transB, g.m, g.n, g.k, g.alpha, a, lda, b, ldb, g.beta, serial, ldc)
	// Rounding of k sums of terms below 1 in size.
	tol := 1e-6 * (float64(g.k) + 4) * max(1, math.Abs(float64(g.alpha)))
	for i := range want {
		if !(math.Abs(float64(c[i])-want[i]) <= tol) || !(math.Abs(float64(serial[i])-want[i]) <= tol) {
			t.Fatalf("%+v: element %d: Gemm %v, GemmSerial %v, want %v", g, i, c[i], serial[i], want[i])
		}
	}
}

func TestGemmAgainstOracle(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		sizes := [][3]int{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 65, 7}, {65, 1, 7}, {7, 9, 1},
			{65, 65, 64}, {14, 32, 8}, {15, 33, 9}, {6, 16, 3}, {13, 31, 300}, {200, 130, 90}, {33, 500, 100}, {100, 70, 600}}
		for _, s := range sizes {
			for trans := range 4 {
				i := (trans + s[0]) % 4
				ab := [][2]float32{{1, 0}, {-0.5, 1}, {2, 0.25}, {0, 0.5}}[i]
				checkGemm(t, e, gemmCase{trans&1 != 0, trans&2 != 0, s[0], s[1], s[2], ab[0], ab[1], [3]int{i, 2 * i, 3 * i}})
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			g := gemmCase{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(90), r.IntN(90), r.IntN(90), r.Float32(), float32(r.IntN(3)) / 2,
				[3]int{r.IntN(4), r.IntN(4), r.IntN(4)}}
			checkGemm(t, e, g)
		}
	})
}

func TestGemmSameBits(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		g := gemmCase{m: 150, n: 130, k: 200, alpha: 1}
		a, lda, b, ldb, c, ldc := g.operands(1)
		e.Gemm(false, false, g.m, g.n, g.k, 1, a, lda, b, ldb, 0, c, ldc)
		for range 10 {
			d := make([]float32, len(c))
			e.Gemm(false, false, g.m, g.n, g.k, 1, a, lda, b, ldb, 0, d, ldc)
			for i := range c {
				if math.Float32bits(c[i]) != math.Float32bits(d[i]) {
					t.Fatalf("element %d: %v then %v", i, c[i], d[i])
				}
			}
		}
	})
}

func TestGemmAllocatesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		g := gemmCase{m: 150, n: 130, k: 200, alpha: 1}
		a, lda, b, ldb, c, ldc := g.operands(1)
		if n := allocs.PerRun(50, func() {
			e.Gemm(false, false, g.m, g.n, g.k, 1, a, lda, b, ldb, 0, c, ldc)
			e.GemmSerial(false, true, 20, 20, 20, 1, a, lda, b, ldb, 0, c, ldc)
		}); n != 0 {
			t.Errorf("%v allocations a call, want 0", n)
		}
	})
}

func BenchmarkGemm(b *testing.B) {
	shapes := []struct {
		m, n, k        int
		transA, transB bool
	}{{m: 1576, n: 768, k: 768}, {m: 2080, n: 384, k: 384}, {m: 2080, n: 1536, k: 384}, {m: 2080, n: 384, k: 1536, transB: true},
		{m: 384, n: 1536, k: 2080, transA: true}, {m: 32, n: 65568, k: 256, transB: true}, {m: 65, n: 65, k: 64, transB: true}, {m: 65, n: 64, k: 65}}
	for _, s := range shapes {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%dx%dx%d/%dthreads", s.m, s.n, s.k, threads), func(b *testing.B) {
				e, err := New(Options{Threads: threads})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				g := gemmCase{transA: s.transA, transB: s.transB, m: s.m, n: s.n, k: s.k}
				x, lda, y, ldb, z, ldc := g.operands(1)
				e.Gemm(s.transA, s.transB, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, z, ldc)
				b.ReportAllocs()
				b.ResetTimer()
				start := time.Now()
				for range b.N {
					e.Gemm(s.transA, s.transB, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, z, ldc)
				}
				b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/time.Since(start).Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkGemmOverhead is what a call costs beside the product itself.
func BenchmarkGemmOverhead(b *testing.B) {
	for _, backend := range []string{Auto, Plain} {
		b.Run(backend, func(b *testing.B) {
			e, err := New(Options{Backend: backend, Threads: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			x, y, z := make([]float32, 1), make([]float32, 1), make([]float32, 1)
			for range b.N {
				e.GemmSerial(false, false, 1, 1, 1, 1, x, 1, y, 1, 0, z, 1)
			}
		})
	}
}
