package kernel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// tableColumn is a way to multiply that BenchmarkGEMMTable measures.
type tableColumn struct {
	name   string
	bf16   bool
	stored bool // operands are bfloat16 already
	engine *Engine
}

// tableColumns are AVX2 where there is more, the product of float32, and those in bfloat16.
func tableColumns(b *testing.B, threads int) (columns []tableColumn) {
	top := cpu.Level()
	engine := func(level string) *Engine {
		cpu.SetLevel(level)
		defer cpu.SetLevel(top)
		e, err := New(Options{Backend: Builtin, Threads: threads})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(e.Close)
		return e
	}
	if cpu.HasAVX512 {
		columns = append(columns, tableColumn{name: "fp32 AVX2", engine: engine(cpu.AVX2)})
	}
	e := engine(top)
	columns = append(columns, tableColumn{name: "fp32", engine: e})
	if e.tiles != nil {
		columns = append(columns, tableColumn{"bf16", true, false, e}, tableColumn{"bf16 stored", true, true, e})
	}
	return columns
}

// BenchmarkGEMMTable prints the GFLOP/s of the products of training steps on one thread (threads=1), by its time, and on all
// (threads=2 and so on), by the time of day, and measures by itself: the time of the benchmark means nothing. GEMM_SHAPES="NT 65,TN" keeps
// the products whose names begin so. bench/peer/gemm.py sets libraries beside it.
func BenchmarkGEMMTable(b *testing.B) {
	for _, threads := range slices.Compact([]int{1, runtime.NumCPU()}) {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) { printTable(b, threads) })
	}
}

// printTable measures and prints one table.
func printTable(b *testing.B, threads int) {
	columns, out := tableColumns(b, threads), new(strings.Builder)
	out.WriteString("| product |")
	for _, c := range columns {
		out.WriteString(" " + c.name + " |")
	}
	out.WriteString("\n|---|" + strings.Repeat("--:|", len(columns)))
	clock, begin := kerneltest.Clock, time.Now()
	if threads > 1 {
		clock = func() time.Duration { return time.Since(begin) }
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range gemmtest.Shapes {
		name := fmt.Sprintf("%s %dx%dx%d", s.Name, s.M, s.N, s.K)
		if s.Serial && threads > 1 || !slices.ContainsFunc(strings.Split(os.Getenv("GEMM_SHAPES"), ","),
			func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			continue
		}
		fmt.Fprintf(out, "\n| %s |", name)
		for _, c := range columns {
			g := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1, BF16: c.bf16},
				HalfA: c.stored, HalfB: c.stored})
			// Rows lie one after the other, as in a step.
			_, g.P.A.LD = g.P.StoredA()
			_, g.P.B.LD = g.P.StoredB()
			g.P.LDC = s.N
			multiply := c.engine.Multiply
			if s.Serial {
				multiply = c.engine.MultiplySerial
			}
			many := max(1, 2_000_000/(s.M*s.N*s.K)) // reading the clock takes its time too
			seconds := kerneltest.BestBy(clock, func() {
				for range many {
					multiply(&g.P)
				}
			})
			fmt.Fprintf(out, " %.0f |", 2e-9*float64(s.M*s.N*s.K*many)/seconds)
		}
	}
	fmt.Println(out)
}

// BenchmarkGEMMEpilogue gives what bias and GELU add to a product, in percent of
// the product alone, for one thread's half of three linear layers.
func BenchmarkGEMMEpilogue(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 2))
	e, err := New(Options{Backend: Builtin, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	for _, s := range [][3]int{{1040, 1536, 384}, {1920, 1536, 384}, {1028, 3072, 768}} {
		for _, bf16 := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%dx%d/bf16=%v", s[0], s[1], s[2], bf16), func(b *testing.B) {
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
