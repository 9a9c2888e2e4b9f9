package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/library"
)

// BenchmarkGEMMTable compares the backends and both precisions, GFLOP/s. It
// measures by itself: the time of the benchmark means nothing.
func BenchmarkGEMMTable(b *testing.B) {
	type column struct {
		name   string
		e      *Engine
		bf16   bool
		stored bool // operands are bfloat16 already
	}
	var columns []column
	add := func(backend, level string) {
		cpu.SetLevel(level)
		e, err := New(Options{Backend: backend, Threads: 1})
		if err != nil {
			return
		}
		b.Cleanup(e.Close)
		name := backend
		if level != "" {
			name += "/" + level
		}
		columns = append(columns, column{name, e, false, false})
		if backend == library.Builtin && level == "" {
			columns = append(columns, column{name + "/bf16", e, true, false}, column{name + "/bf16 stored", e, true, true})
		}
	}
	add(library.Builtin, cpu.AVX2)
	add(library.Builtin, "")
	add(library.OneDNN, "")
	cpu.SetLevel("")
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range gemmtest.Shapes {
		for _, c := range columns {
			b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", s.Name, s.M, s.N, s.K, c.name), func(b *testing.B) {
				g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1, BF16: c.bf16},
					HalfA: c.stored, HalfB: c.stored})
				f := c.e.Multiply
				if s.Serial {
					f = c.e.MultiplySerial
				}
				seconds := kerneltest.Best(func() { f(&g.P) })
				b.ReportMetric(2*float64(s.M)*float64(s.N)*float64(s.K)/seconds/1e9, "GFLOP/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkGEMMEpilogue gives what bias and GELU add to a product, in percent of
// the product alone, for one thread's half of three linear layers.
func BenchmarkGEMMEpilogue(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, backend := range []string{library.Builtin, library.OneDNN} {
		e, err := New(Options{Backend: backend, Threads: 1})
		if err != nil {
			continue
		}
		b.Cleanup(e.Close)
		for _, s := range [][3]int{{1040, 1536, 384}, {1920, 1536, 384}, {1028, 3072, 768}} {
			for _, bf16 := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/bf16=%v", backend, s[0], s[1], s[2], bf16), func(b *testing.B) {
					g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransB: true, M: s[0], N: s[1], K: s[2], Alpha: 1, BF16: bf16}, Bias: true, Gelu: true})
					all, bias, alone := g.P, g.P, g.P
					bias.Activated, alone.Activated, alone.Bias = nil, nil, nil
					least := kerneltest.Best(func() { e.MultiplySerial(&alone) })
					b.ReportMetric(100*(kerneltest.Best(func() { e.MultiplySerial(&bias) })/least-1), "%bias")
					b.ReportMetric(100*(kerneltest.Best(func() { e.MultiplySerial(&all) })/least-1), "%bias+gelu")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
