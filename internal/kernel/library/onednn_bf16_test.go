package library

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// halfLibrary returns oneDNN where it is installed and multiplies bfloat16 here.
func halfLibrary(t testing.TB) *oneDNN {
	t.Helper()
	l := librarySpecs[0].find()
	if l.Backend == nil {
		t.Skipf("oneDNN is not on this machine: %s", l.Info.Reason)
	}
	d := l.Backend.(*oneDNN)
	if !d.SupportsBF16() {
		t.Skipf("%s does not multiply bfloat16 here: %v", d.version, d.half.err)
	}
	return d
}

// halfCase is a product of bfloat16 with its operands.
type halfCase struct {
	gemm.Product
	before []float32
}

func newHalfCase(r *rand.Rand, m, n, k int) *halfCase {
	scalars := [][2]float32{{1, 0}, {1, 1}, {-0.5, 0.25}, {2, 0}, {0.125, 1}}[r.IntN(5)]
	g := gemmtest.NewCase(r, gemmtest.Case{
		P: gemm.Product{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, M: m, N: n, K: k,
			Alpha: scalars[0], Beta: scalars[1], BF16: true},
		HalfA: true, HalfB: true, Bias: r.IntN(2) == 0})
	return &halfCase{g.P, append([]float32(nil), g.P.C...)}
}

func (g *halfCase) String() string {
	return fmt.Sprintf("transA %v transB %v %dx%dx%d alpha %v beta %v strides %d %d %d bias %v",
		g.TransA, g.TransB, g.M, g.N, g.K, g.Alpha, g.Beta, g.A.LD, g.B.LD, g.LDC, g.Bias != nil)
}

func (g *halfCase) run(b gemm.HalfBackend) {
	b.BGEMM(g.TransA, g.TransB, g.M, g.N, g.K, g.Alpha, g.A.BF16, g.A.LD, g.B.BF16, g.B.LD, g.Beta, g.C, g.LDC, g.Bias)
}

// check compares a product with its exact value; see checkProduct for the bound.
func (g *halfCase) check(b gemm.HalfBackend) error {
	copy(g.C, g.before)
	want, size := gemmtest.Exact(&g.Product)
	if g.Beta == 0 { // must not be read
		for i := range g.C {
			if i%g.LDC < g.N {
				g.C[i] = float32(math.NaN())
			}
		}
	}
	g.run(b)
	for i := range g.C {
		if i%g.LDC >= g.N {
			if g.C[i] != g.before[i] {
				return fmt.Errorf("%v: wrote between the rows", g)
			}
			continue
		}
		if !(math.Abs(float64(g.C[i])-want[i]) <= float64(g.K+4)*size[i]*0x1p-24) {
			return fmt.Errorf("%v: row %d column %d: got %v, want %v", g, i/g.LDC, i%g.LDC, g.C[i], want[i])
		}
	}
	return nil
}

func TestHalfProductOfLibrary(t *testing.T) {
	d := halfLibrary(t)
	r := rand.New(rand.NewPCG(31, 32))
	cases := 300
	if allocs.Race { // which makes the exact value slow
		cases = 40
	}
	for range cases {
		g := newHalfCase(r, 1+r.IntN(90), 1+r.IntN(90), 1+r.IntN(90))
		if err := g.check(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range [][3]int{{1, 1, 1}, {1, 768, 5}, {768, 1, 33}, {257, 64, 257}, {64, 65, 513}, {300, 130, 64}} {
		for range 4 {
			if err := newHalfCase(r, s[0], s[1], s[2]).check(d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Infinities and NaN come out as they do from the plain product.
func TestHalfProductSpecialValues(t *testing.T) {
	d := halfLibrary(t)
	a := []uint16{0x7f80, 0x3f80, 0x7fc0, 0x3f80, 0xff80, 0x0000} // inf 1; nan 1; -inf 0
	b := []uint16{0x3f80, 0x4000}                                 // 1; 2
	c := make([]float32, 3)
	d.BGEMM(false, false, 3, 1, 2, 1, a, 2, b, 1, 0, c, 1, nil)
	if !math.IsInf(float64(c[0]), 1) || c[1] == c[1] || !math.IsInf(float64(c[2]), -1) {
		t.Errorf("got %v, want [+Inf NaN -Inf]", c)
	}
}

// A product that was computed before allocates nothing.
func TestHalfProductAllocatesNothing(t *testing.T) {
	if allocs.Race {
		t.Skip("allocations cannot be counted under the race detector")
	}
	d := halfLibrary(t)
	r := rand.New(rand.NewPCG(33, 34))
	var cases []*halfCase
	for range 8 {
		cases = append(cases, newHalfCase(r, 40+r.IntN(40), 70, 50))
	}
	if n := allocs.PerRun(20, func() {
		for _, g := range cases {
			g.run(d)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Many goroutines share primitives, also while others are evicted and made.
func TestHalfProductConcurrently(t *testing.T) {
	d := halfLibrary(t)
	cache := &matmulCache{api: d.half.cache.api, limit: 5, entries: map[matmulKey]*matmul{}}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			// The same shapes for all, each with its own operands.
			r := rand.New(rand.NewPCG(35, uint64(worker%2)))
			for range 60 {
				g := newHalfCase(r, 1+r.IntN(3)*20, 33, 1+r.IntN(3)*16)
				if err := g.check(cacheProduct{cache}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if len(cache.entries) > 5+6 {
		t.Errorf("%d products kept, want 5 and those in use", len(cache.entries))
	}
	for _, p := range cache.entries {
		if p.users != 0 {
			t.Errorf("%+v is still in use", p.key)
		}
	}
}

// cacheProduct is a cache as a backend.
type cacheProduct struct{ h *matmulCache }

func (c cacheProduct) SupportsBF16() bool { return true }

func (c cacheProduct) BGEMM(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int, beta float32, x []float32, ldc int, bias []float32) {
	if !c.h.multiply(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, x, ldc, bias) {
		panic("refused")
	}
}

// The least recently used product goes first.
func TestMatmulCacheEvicts(t *testing.T) {
	d := halfLibrary(t)
	cache := &matmulCache{api: d.half.cache.api, limit: 2, entries: map[matmulKey]*matmul{}}
	r := rand.New(rand.NewPCG(36, 37))
	cases := []*halfCase{newHalfCase(r, 3, 4, 5), newHalfCase(r, 4, 5, 6), newHalfCase(r, 5, 6, 7)}
	for _, i := range []int{0, 1, 0, 2} {
		if err := cases[i].check(cacheProduct{cache}); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[int]bool{}
	for key := range cache.entries {
		kept[key.m] = true
	}
	if len(kept) != 2 || !kept[3] || !kept[5] {
		t.Errorf("products of %v rows kept, want 3 and 5", kept)
	}
}

// Where the processor has no bfloat16, the library says so and still multiplies.
func TestHalfProductWithoutInstructions(t *testing.T) {
	l := librarySpecs[0].find()
	if l.Backend == nil {
		t.Skipf("oneDNN is not on this machine: %s", l.Info.Reason)
	}
	shared := l.Backend.(*oneDNN)
	if background := (&oneDNN{lib: shared.lib, fn: shared.fn, major: shared.major}); background.SupportsBF16() {
		t.Error("bfloat16 is supported by a build that works in the background")
	}
	cpu.SetLevel(cpu.AVX2)
	defer cpu.SetLevel("")
	d := &oneDNN{lib: shared.lib, fn: shared.fn, major: shared.major, synchronous: true}
	d.args.Make = shared.args.Make
	if d.SupportsBF16() {
		t.Error("bfloat16 is supported on a processor limited to AVX2")
	}
	r := rand.New(rand.NewPCG(38, 39))
	for range 10 {
		if err := newHalfCase(r, 1+r.IntN(40), 1+r.IntN(40), 1+r.IntN(40)).check(d); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkHalfProduct compares the library's products in bfloat16 and float32
// with the built-in one in bfloat16, GFLOP/s on one thread. It measures by itself.
func BenchmarkHalfProduct(b *testing.B) {
	d := halfLibrary(b)
	tiles := gemm.NewBF16()
	r := rand.New(rand.NewPCG(41, 42))
	for _, s := range gemmtest.Shapes {
		g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1, BF16: true}, HalfA: true, HalfB: true}).P
		f := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1}}).P
		c := &halfCase{Product: g}
		for _, column := range []struct {
			name string
			run  func()
		}{
			{"onednn bf16", func() { c.run(d) }},
			{"onednn fp32", func() {
				d.SGEMM(f.TransA, f.TransB, f.M, f.N, f.K, 1, f.A.F32, f.A.LD, f.B.F32, f.B.LD, 0, f.C, f.LDC)
			}},
			{"builtin bf16", func() { tiles.Multiply(&g) }},
		} {
			if column.name == "builtin bf16" && tiles == nil {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", s.Name, s.M, s.N, s.K, column.name), func(b *testing.B) {
				seconds := kerneltest.Best(column.run)
				b.ReportMetric(2*float64(s.M)*float64(s.N)*float64(s.K)/seconds/1e9, "GFLOP/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
