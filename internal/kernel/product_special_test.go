package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// sprinkle replaces a few values of x by special ones.
func sprinkle(r *rand.Rand, x Matrix, values []float32) {
	for range 1 + x.length()/40 {
		if x.length() == 0 {
			return
		}
		i, v := r.IntN(x.length()), values[r.IntN(len(values))]
		if x.BF16 != nil {
			x.BF16[i] = halfOf(v)
		} else {
			x.F32[i] = v
		}
	}
}

// NaN and infinities go where the formula takes them and nowhere else; denormals
// and zeros of either sign are harmless.
func TestProductSpecialValues(t *testing.T) {
	minusZero := float32(math.Copysign(0, -1))
	// Apart, since a denormal that counts as 0 makes NaN of an infinity.
	sets := [][]float32{{nan32, inf32, -inf32, 0, minusZero, 1e15}, {0x1p-149, -0x1p-130, 0x1p-126, 0, minusZero, 1e15, -1e15}}
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(41, 42))
		for i := range 150 {
			values := sets[i%2]
			g := randomCase(r, 1+r.IntN(50), 1+r.IntN(50), 1+r.IntN(50))
			p := &g.p
			if p.Alpha == 0 {
				p.Alpha = 1
			}
			sprinkle(r, p.A, values)
			sprinkle(r, p.B, values)
			want, size := exact(p)
			// What a denormal that counts as 0 takes away, at most.
			lost := 0x1p-126 * 1e15 * float64(p.K)
			e.Multiply(p)
			for i, c := range p.C {
				if i%p.LDC >= p.N {
					continue
				}
				w := want[i]
				switch {
				case math.IsNaN(w):
					if c == c {
						t.Fatalf("%v: element %d: got %v, want NaN", g, i, c)
					}
				case math.IsInf(w, 0):
					if float64(c) != w {
						t.Fatalf("%v: element %d: got %v, want %v", g, i, c, w)
					}
				case !(math.Abs(float64(c)-w) <= float64(p.K+4)*size[i]*0x1p-24+lost):
					t.Fatalf("%v: element %d: got %v, want %v", g, i, c, w)
				}
			}
		}
	})
}

// Every height and width of a tile, with one and several blocks along k.
func TestProductTiles(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		e, err := New(Options{Backend: backendBuiltin, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r := rand.New(rand.NewPCG(43, 44))
		for m := 1; m <= 15; m++ {
			for n := 1; n <= 34; n++ {
				for _, bf16 := range []bool{false, true} {
					g := productCase{p: Product{M: m, N: n, K: 1 + r.IntN(6), Alpha: 1, Beta: float32(n % 2), BF16: bf16, TransB: r.IntN(2) == 0, TransA: r.IntN(2) == 0}, bias: r.IntN(2) == 0}
					checkProduct(t, e, newProductCase(r, g))
				}
			}
		}
	})
}

// The bits of a product of the built-in kernels do not depend on the threads.
func TestProductSameBitsOnAnyThreads(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(45, 46))
		for _, bf16 := range []bool{false, true} {
			for trans := range 4 {
				g := newProductCase(r, productCase{p: Product{TransA: trans&1 != 0, TransB: trans&2 != 0, M: 150, N: 230, K: 700, Alpha: 1, BF16: bf16}, bias: true, gelu: true})
				var want []float32
				for threads := 1; threads <= 4; threads++ {
					e, err := New(Options{Backend: backendBuiltin, Threads: threads})
					if err != nil {
						t.Fatal(err)
					}
					e.Multiply(&g.p)
					e.Close()
					got := append(append([]float32(nil), g.p.C...), g.p.GELU...)
					if want == nil {
						want = got
						continue
					}
					for i := range got {
						if i%len(g.p.C)%g.p.LDC < g.p.N && math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%v: %d threads: element %d: got %v, want %v", g, threads, i, got[i], want[i])
						}
					}
				}
			}
		}
	})
}

func TestProductAllocatesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(47, 48))
		for _, g := range []productCase{
			{bias: true, gelu: true},
			{p: Product{BF16: true}, bias: true},
			{p: Product{BF16: true}, halfA: true, gelu: true},
			{halfB: true},
		} {
			large, small := g, g
			large.p.M, large.p.N, large.p.K, large.p.Alpha = 130, 150, 120, 1
			small.p.M, small.p.N, small.p.K, small.p.Alpha = 20, 21, 22, 1
			large, small = newProductCase(r, large), newProductCase(r, small)
			if n := allocs.PerRun(20, func() {
				e.Multiply(&large.p)
				e.MultiplySerial(&small.p)
			}); n != 0 {
				t.Errorf("%v: %v allocations, want 0", large, n)
			}
		}
	})
}

func TestProductPanics(t *testing.T) {
	e := newTestEngine(t, 1)
	f := make([]float32, 12)
	h := make([]uint16, 12)
	good := func() Product {
		return Product{M: 3, N: 4, K: 2, Alpha: 1, A: Matrix{F32: f, LD: 2}, B: Matrix{F32: f, LD: 4}, C: make([]float32, 12), LDC: 4}
	}
	tests := map[string]func(p *Product){
		"negative size": func(p *Product) { p.K = -1 },
		"A is 3 x 2":    func(p *Product) { p.A = Matrix{BF16: h[:5], LD: 2} },
		"B is 2 x 4":    func(p *Product) { p.B.LD = 3 },
		"C is 3 x 4":    func(p *Product) { p.C = p.C[:11] },
		"GELU is 3 x 4": func(p *Product) { p.GELU = p.C[:11] },
		"Bias must":     func(p *Product) { p.Bias = f[:3] },
		"set one":       func(p *Product) { p.A.BF16 = h },
	}
	for want, change := range tests {
		for _, multiply := range []func(*Product){e.Multiply, e.MultiplySerial} {
			p := good()
			change(&p)
			func() {
				defer func() {
					if v, ok := recover().(string); !ok || !strings.Contains(v, want) {
						t.Errorf("%s: got %v", want, v)
					}
				}()
				multiply(&p)
			}()
		}
	}
}

// fakeHalf is a library that multiplies bfloat16.
type fakeHalf struct {
	plainGemm
	calls *atomic.Int32
}

func (fakeHalf) bf16Supported() bool { return true }

func (f fakeHalf) bgemm(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int, beta float32, c []float32, ldc int, bias []float32) {
	f.calls.Add(1)
	x, y := make([]float32, len(a)), make([]float32, len(b))
	FromBF16(x, a)
	FromBF16(y, b)
	f.sgemm(transA, transB, m, n, k, alpha, x, lda, y, ldb, beta, c, ldc)
	if bias != nil {
		for i := range m {
			for j, v := range bias[:n] {
				c[i*ldc+j] += v
			}
		}
	}
}

// Operands of a library are converted first, and nothing is done twice.
func TestProductByLibrary(t *testing.T) {
	var calls atomic.Int32
	libraries := map[string]halfProduct{"fake": fakeHalf{calls: &calls}}
	for _, name := range []string{backendOneDNN, backendOpenBLAS, backendMKL} {
		found, _, _ := choose(name)
		if l, ok := found.backend.(halfProduct); ok && l.bf16Supported() {
			libraries[name] = l
		}
	}
	for name, l := range libraries {
		for _, threads := range []int{1, 3} {
			e := newTestEngine(t, threads)
			e.library, e.tiles = l, nil
			r := rand.New(rand.NewPCG(49, 50))
			for range 30 {
				checkProduct(t, e, randomCase(r, 1+r.IntN(60), 1+r.IntN(200), 1+r.IntN(60)))
			}
			g := newProductCase(r, productCase{p: Product{M: 200, N: 130, K: 150, Alpha: 1, BF16: true}, bias: true, gelu: true})
			checkProduct(t, e, g)
			if n := allocs.PerRun(20, func() { e.Multiply(&g.p) }); n != 0 && name != "fake" {
				t.Errorf("%s: %v allocations, want 0", name, n)
			}
		}
	}
	if calls.Load() == 0 {
		t.Error("the library was not called")
	}
}

func TestPrecision(t *testing.T) {
	if e, err := New(Options{Precision: "fp16"}); err == nil || !strings.Contains(err.Error(), "fp16") {
		e.Close()
		t.Errorf("fp16: got %v", err)
	}
	defer setCPULevel("")
	for _, tt := range []struct {
		precision, level string
		bf16, warns      bool
		describe         string
	}{
		{"", "", false, false, ""},
		{"fp32", levelPlain, false, false, ""},
		{"bf16", levelAVX2, true, true, "bf16 emulated"},
		{"bf16", levelPlain, true, true, "bf16 emulated"},
		{"bf16", "", true, !hasBF16, "bf16"},
	} {
		setCPULevel(tt.level)
		e, err := New(Options{Backend: backendBuiltin, Threads: 1, Precision: tt.precision})
		if err != nil {
			t.Fatal(err)
		}
		warns := strings.Contains(fmt.Sprint(e.Warnings()), "bf16 brings no speed")
		if e.BF16() != tt.bf16 || warns != tt.warns || !strings.Contains(e.Describe(), tt.describe) {
			t.Errorf("%+v: bf16 %v, warnings %q, %s", tt, e.BF16(), e.Warnings(), e.Describe())
		}
		if g := MeasureGEMM(e, 20, 20, 20, 0); !(g > 0) {
			t.Errorf("%+v: measured %v", tt, g)
		}
		e.Close()
	}
}
