package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// sprinkle replaces a few values of x by special ones.
func sprinkle(r *rand.Rand, x gemm.Matrix, values []float32) {
	for range 1 + x.Length()/40 {
		if x.Length() == 0 {
			return
		}
		i, v := r.IntN(x.Length()), values[r.IntN(len(values))]
		if x.BF16 != nil {
			x.BF16[i] = gemmtest.Half(v)
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
	sets := [][]float32{{kerneltest.NaN, kerneltest.Inf, -kerneltest.Inf, 0, minusZero, 1e15}, {0x1p-149, -0x1p-130, 0x1p-126, 0, minusZero, 1e15, -1e15}}
	eachBackend(t, func(t *testing.T, e *Engine) {
		r := rand.New(rand.NewPCG(41, 42))
		for i := range 150 {
			values := sets[i%2]
			g := gemmtest.RandomCase(r, 1+r.IntN(50), 1+r.IntN(50), 1+r.IntN(50))
			p := &g.P
			if p.Alpha == 0 {
				p.Alpha = 1
			}
			sprinkle(r, p.A, values)
			sprinkle(r, p.B, values)
			want, size := gemmtest.Exact(p)
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
	kerneltest.EachLevel(t, func(t *testing.T) {
		e, err := New(Options{Backend: Builtin, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		r := rand.New(rand.NewPCG(43, 44))
		for m := 1; m <= 15; m++ {
			for n := 1; n <= 34; n++ {
				for _, bf16 := range []bool{false, true} {
					g := gemmtest.Case{P: gemm.Product{M: m, N: n, K: 1 + r.IntN(6), Alpha: 1, Beta: float32(n % 2), BF16: bf16, TransB: r.IntN(2) == 0, TransA: r.IntN(2) == 0}, Bias: r.IntN(2) == 0}
					checkProduct(t, e, gemmtest.NewCase(r, g))
				}
			}
		}
	})
}

// The bits of a product of the built-in kernels do not depend on the threads.
func TestProductSameBitsOnAnyThreads(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(45, 46))
		for _, bf16 := range []bool{false, true} {
			for trans := range 4 {
				g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: trans&1 != 0, TransB: trans&2 != 0, M: 150, N: 230, K: 700, Alpha: 1, BF16: bf16}, Bias: true, Gelu: true})
				var want []float32
				for threads := 1; threads <= 4; threads++ {
					e, err := New(Options{Backend: Builtin, Threads: threads})
					if err != nil {
						t.Fatal(err)
					}
					e.Multiply(&g.P)
					e.Close()
					got := append(append([]float32(nil), g.P.C...), g.P.Activated...)
					if want == nil {
						want = got
						continue
					}
					for i := range got {
						if i%len(g.P.C)%g.P.LDC < g.P.N && math.Float32bits(got[i]) != math.Float32bits(want[i]) {
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
		for _, g := range []gemmtest.Case{
			{Bias: true, Gelu: true},
			{P: gemm.Product{BF16: true}, Bias: true},
			{P: gemm.Product{BF16: true}, HalfA: true, Gelu: true},
			{HalfB: true},
		} {
			large, small := g, g
			large.P.M, large.P.N, large.P.K, large.P.Alpha = 130, 150, 120, 1
			small.P.M, small.P.N, small.P.K, small.P.Alpha = 20, 21, 22, 1
			large, small = gemmtest.NewCase(r, large), gemmtest.NewCase(r, small)
			if n := allocs.PerRun(20, func() {
				e.Multiply(&large.P)
				e.MultiplySerial(&small.P)
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
	good := func() gemm.Product {
		return gemm.Product{M: 3, N: 4, K: 2, Alpha: 1, A: gemm.Matrix{F32: f, LD: 2}, B: gemm.Matrix{F32: f, LD: 4}, C: make([]float32, 12), LDC: 4}
	}
	tests := map[string]func(p *gemm.Product){
		"negative size":         func(p *gemm.Product) { p.K = -1 },
		"A is 3 x 2":            func(p *gemm.Product) { p.A = gemm.Matrix{BF16: h[:5], LD: 2} },
		"B is 2 x 4":            func(p *gemm.Product) { p.B.LD = 3 },
		"C is 3 x 4":            func(p *gemm.Product) { p.C = p.C[:11] },
		"Activated is 3 x 4":    func(p *gemm.Product) { p.Activated, p.Activation = p.C[:11], vector.ByGELU },
		"without an Activation": func(p *gemm.Product) { p.Activated = p.C },
		"Bias must":             func(p *gemm.Product) { p.Bias = f[:3] },
		"set one":               func(p *gemm.Product) { p.A.BF16 = h },
	}
	for want, change := range tests {
		for _, multiply := range []func(*gemm.Product){e.Multiply, e.MultiplySerial} {
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

func TestPrecision(t *testing.T) {
	if e, err := New(Options{Precision: "fp16"}); err == nil || !strings.Contains(err.Error(), "fp16") {
		e.Close()
		t.Errorf("fp16: got %v", err)
	}
	defer cpu.SetLevel("")
	for _, tt := range []struct {
		precision, level string
		bf16, warns      bool
		describe         string
	}{
		{"", "", false, false, ""},
		{"fp32", cpu.Plain, false, false, ""},
		{"bf16", cpu.AVX2, true, true, "bf16 emulated"},
		{"bf16", cpu.Plain, true, true, "bf16 emulated"},
		{"bf16", "", true, !cpu.HasBF16, "bf16"},
	} {
		cpu.SetLevel(tt.level)
		e, err := New(Options{Backend: Builtin, Threads: 1, Precision: tt.precision})
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
