package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/library"
)

// tableColumn is a way to multiply that BenchmarkGEMMTable measures.
type tableColumn struct {
	name     string
	bf16     bool
	stored   bool // operands are bfloat16 already
	external bool // by a library
	multiply func(p *gemm.Product, serial bool)
}

// tableColumns makes the columns of the built-in product and of the libraries that are found.
func tableColumns(b *testing.B, threads int) []tableColumn {
	var columns []tableColumn
	top := cpu.Level()
	engine := func(name, backend, level string) *Engine {
		cpu.SetLevel(level)
		defer cpu.SetLevel(top)
		e, err := New(Options{Backend: backend, Threads: threads})
		if err != nil {
			b.Logf("no %s: %v", name, err)
			return nil
		}
		b.Cleanup(e.Close)
		// What the engine would rather do by itself is not the library's speed.
		if backend != library.Builtin {
			e.float = nil
		}
		columns = append(columns, tableColumn{name: name, external: backend != library.Builtin, multiply: func(p *gemm.Product, serial bool) {
			if serial {
				e.MultiplySerial(p)
			} else {
				e.Multiply(p)
			}
		}})
		return e
	}
	if cpu.HasAVX512 {
		engine("built-in AVX2", library.Builtin, cpu.AVX2)
	}
	own := engine("built-in", library.Builtin, top)
	float := columns[len(columns)-1]
	one := engine("oneDNN", library.OneDNN, top)
	engine("OpenBLAS", library.OpenBLAS, top)
	engine("MKL", library.MKL, top)
	if own.tiles != nil {
		float.bf16 = true
		float.name = "built-in bf16"
		columns = append(columns, float)
		float.name, float.stored = "bf16 stored", true
		columns = append(columns, float)
	}
	if one == nil {
		return columns
	}
	if l, ok := one.backend.(gemm.HalfBackend); ok && cpu.HasBF16 && l.SupportsBF16() {
		one.library = l
		half := columns[slices.IndexFunc(columns, func(c tableColumn) bool { return c.name == "oneDNN" })]
		half.name, half.bf16, half.stored, half.external = "oneDNN bf16 stored", true, true, false
		columns = append(columns, half)
	}
	return columns
}

// BenchmarkGEMMTable compares the built-in product, the libraries that are found and both precisions: GFLOP/s of
// one thread (threads=1) and of all (threads=2 and so on), and the share of the built-in product in the speed of the best
// library in fp32. It prints the table of docs/benchmarks.md and measures by itself: the time of the benchmark means nothing.
// Libraries limited to AVX2 are compared by GEOALIGN_CPU=avx2 ONEDNN_MAX_CPU_ISA=AVX2
// MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell.
func BenchmarkGEMMTable(b *testing.B) {
	for _, threads := range slices.Compact([]int{1, runtime.NumCPU()}) {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) { printTable(b, threads) })
	}
}

// printTable measures and prints one table.
func printTable(b *testing.B, threads int) {
	columns := tableColumns(b, threads)
	var out strings.Builder
	out.WriteString("| product |")
	for _, c := range columns {
		out.WriteString(" " + c.name + " |")
	}
	out.WriteString(" share of the best library |\n|---|" + strings.Repeat("--:|", len(columns)+1))
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range gemmtest.Shapes {
		if s.Serial && threads > 1 {
			continue
		}
		fmt.Fprintf(&out, "\n| %s %dx%dx%d |", s.Name, s.M, s.N, s.K)
		var own, best float64
		for _, c := range columns {
			g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1, BF16: c.bf16},
				HalfA: c.stored, HalfB: c.stored})
			// Rows lie one after the other, as in a step.
			_, g.P.A.LD = g.P.StoredA()
			_, g.P.B.LD = g.P.StoredB()
			g.P.LDC = s.N
			speed := 2 * float64(s.M) * float64(s.N) * float64(s.K) / kerneltest.Best(func() { c.multiply(&g.P, s.Serial) }) / 1e9
			fmt.Fprintf(&out, " %.0f |", speed)
			switch {
			case c.external:
				best = max(best, speed)
			case !c.bf16:
				own = speed // the last is that of the highest level
			}
		}
		if best > 0 {
			fmt.Fprintf(&out, " %.0f %% |", 100*own/best)
		} else {
			out.WriteString(" |")
		}
	}
	fmt.Println(out.String())
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
