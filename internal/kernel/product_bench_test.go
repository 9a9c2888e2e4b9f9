package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// best returns the least seconds of a run of f on this thread, from repeats over
// at least 100 ms: what is above it is other work on the machine.
func best(f func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
	least, start := time.Hour, clock()
	for i := 0; i < 5 || clock()-start < 100*time.Millisecond; i++ {
		t := clock()
		f()
		least = min(least, clock()-t)
	}
	return least.Seconds()
}

// productShapes are the products of training steps: linear layers forward (NT),
// their input gradients (NN) and weight gradients (TN), and attention heads.
var productShapes = []struct {
	name           string
	transA, transB bool
	m, n, k        int
	serial         bool
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
		setCPULevel(level)
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
		if backend == backendBuiltin && level == "" {
			columns = append(columns, column{name + "/bf16", e, true, false}, column{name + "/bf16 stored", e, true, true})
		}
	}
	add(backendBuiltin, levelAVX2)
	add(backendBuiltin, "")
	add(backendOneDNN, "")
	setCPULevel("")
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range productShapes {
		for _, c := range columns {
			b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", s.name, s.m, s.n, s.k, c.name), func(b *testing.B) {
				g := newProductCase(r, productCase{p: Product{TransA: s.transA, TransB: s.transB, M: s.m, N: s.n, K: s.k, Alpha: 1, BF16: c.bf16},
					halfA: c.stored, halfB: c.stored})
				f := c.e.Multiply
				if s.serial {
					f = c.e.MultiplySerial
				}
				seconds := best(func() { f(&g.p) })
				b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)/seconds/1e9, "GFLOP/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkGEMMEpilogue gives what bias and GELU add to a product, in percent of
// the product alone, for one thread's half of three linear layers.
func BenchmarkGEMMEpilogue(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, backend := range []string{backendBuiltin, backendOneDNN} {
		e, err := New(Options{Backend: backend, Threads: 1})
		if err != nil {
			continue
		}
		b.Cleanup(e.Close)
		for _, s := range [][3]int{{1040, 1536, 384}, {1920, 1536, 384}, {1028, 3072, 768}} {
			for _, bf16 := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/bf16=%v", backend, s[0], s[1], s[2], bf16), func(b *testing.B) {
					g := newProductCase(r, productCase{p: Product{TransB: true, M: s[0], N: s[1], K: s[2], Alpha: 1, BF16: bf16}, bias: true, gelu: true})
					all, bias, alone := g.p, g.p, g.p
					bias.GELU, alone.GELU, alone.Bias = nil, nil, nil
					least := best(func() { e.MultiplySerial(&alone) })
					b.ReportMetric(100*(best(func() { e.MultiplySerial(&bias) })/least-1), "%bias")
					b.ReportMetric(100*(best(func() { e.MultiplySerial(&all) })/least-1), "%bias+gelu")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
