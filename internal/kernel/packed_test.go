package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// Products by packed weights have the bits of those without, on any number of threads, at block edges and after the weights
// changed.
func TestPackWeights(t *testing.T) {
	sizes := [][3]int{{1, 1, 1}, {1, 300, 70}, {1, 2500, 900}, {7, 33, 257}, {16, 800, 513}, {70, 97, 300}, {200, 777, 65}}
	kerneltest.EachLevel(t, func(t *testing.T) {
		if cpu.Level() == cpu.Plain {
			return
		}
		for _, threads := range []int{1, 2, 5} {
			e, err := New(Options{Backend: Builtin, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := rand.New(rand.NewPCG(71, 72))
			for _, s := range sizes {
				g := gemmtest.RandomCase(r, s[0], s[1], s[2])
				if g.P.BF16 = g.P.BF16 && cpu.HasBF16; !g.P.BF16 {
					g.HalfA, g.HalfB = false, false
				}
				g = gemmtest.NewCase(r, g)
				p := g.P
				packed := e.PackWeights(&p)
				if packed == nil {
					t.Fatalf("%v: not packed", g)
				}
				for range 2 {
					start := slices.Clone(p.C)
					e.Multiply(&p)
					want := slices.Clone(p.C)
					copy(p.C, start)
					p.Packed = e.PackWeights(&p)
					e.Multiply(&p)
					if !slices.Equal(p.C, want) {
						t.Fatalf("%v on %d threads: other bits", g, threads)
					}
					p.Packed = nil
					for i := range p.B.F32 {
						p.B.F32[i] *= 1.5
					}
				}
			}
		}
	})
}

// A packed matrix of other sizes is refused; a library with rows enough gets none.
func TestPackWeightsRefuses(t *testing.T) {
	e := newTestEngine(t, 1)
	x := make([]float32, 64)
	p := &gemm.Product{M: 4, N: 8, K: 8, Alpha: 1, A: gemm.Matrix{F32: x, LD: 8}, B: gemm.Matrix{F32: x, LD: 8}, C: make([]float32, 32), LDC: 8,
		Packed: &gemm.Packed{K: 7, N: 9}}
	func() {
		defer func() {
			if v, ok := recover().(string); !ok || !strings.Contains(v, "got 7 x 9") {
				t.Errorf("got %v", v)
			}
		}()
		e.Multiply(p)
	}()
	plain, err := New(Options{Backend: Plain, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	p.Packed = nil
	if plain.PackWeights(p) != nil {
		t.Error("plain: packed")
	}
}

// BenchmarkPacked gives the milliseconds of a linear layer of few and of many rows on all threads, by weights as they are and
// packed before, what packing takes, and GB/s of packed weights read.
func BenchmarkPacked(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	e, err := New(Options{Backend: Builtin})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	for _, s := range [][3]int{{1, 768, 768}, {1, 30522, 768}, {4, 30522, 768}, {16, 30522, 768}, {8, 3072, 768}, {77, 3072, 768}, {197, 3072, 768},
		{616, 3072, 768}, {616, 768, 3072}, {2056, 3072, 768}, {2080, 1536, 384}} {
		for _, bf16 := range []bool{false, true} {
			if bf16 && e.tiles == nil {
				continue
			}
			g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransB: true, M: s[0], N: s[1], K: s[2], Alpha: 1, BF16: bf16}, Bias: true})
			p := g.P
			packed := p
			packed.Packed = e.PackWeights(&p)
			name := "fp32"
			if bf16 {
				name = "bf16"
			}
			b.Run(fmt.Sprintf("%s/%dx%dx%d", name, s[0], s[1], s[2]), func(b *testing.B) {
				with := kerneltest.Best(func() { e.Multiply(&packed) })
				b.ReportMetric(1000*kerneltest.Best(func() { e.Multiply(&p) }), "ms")
				b.ReportMetric(1000*with, "ms/packed")
				b.ReportMetric(1000*kerneltest.Best(func() { packed.Packed = e.PackWeights(&p) }), "ms/packing")
				b.ReportMetric(float64(packed.Packed.Bytes())/with/1e9, "GB/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
