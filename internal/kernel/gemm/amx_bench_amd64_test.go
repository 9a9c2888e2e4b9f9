package gemm

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// BenchmarkAMX multiplies on one thread, with operands and results in the caches and in others than those of the last products ("cold"), as in a training
// step: GFLOP/s, and the share of what tiles do whose operands stay in the level-1 cache, measured in between, since clocks move.
func BenchmarkAMX(b *testing.B) {
	t := NewAMX()
	if t == nil {
		b.Skip("this processor has no AMX, or the system does not allow it")
	}
	for _, s := range []struct {
		name           string
		transA, transB bool
		m, n, k        int
		half           bool // the result is
	}{
		{"forward", false, true, 1040, 384, 384, true}, {"forward", false, true, 1040, 1536, 384, true}, {"forward", false, true, 1040, 384, 1536, true},
		{"float32", false, false, 1040, 384, 384, false}, {"weights", true, false, 768, 384, 2080, false}, {"weights", true, false, 1536, 768, 2056, false},
	} {
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d/cold=%t", s.name, s.m, s.n, s.k, cold), func(b *testing.B) {
				sets := 1
				if cold {
					sets = 64
				}
				products := make([]Product, sets)
				for i := range products {
					p := Product{TransA: s.transA, TransB: s.transB, M: s.m, N: s.n, K: s.k, Alpha: 1, BF16: true, LDC: s.n, C: make([]float32, s.m*s.n)}
					p.A, p.B = ones(s.m*s.k, s.k), ones(s.n*s.k, s.n)
					if s.transA {
						p.A.LD = s.m
					}
					if s.transB {
						p.B.LD = s.k
					}
					if s.half {
						p.Half = ones(s.m*s.n, 0).BF16
					}
					t.Multiply(&p)
					products[i] = p
				}
				var took, tiles time.Duration
				flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
				w := t.Work.Take()
				defer t.Work.Give(w)
				for i := range b.N {
					tiles += w.tileTime()
					begin := time.Now()
					t.Multiply(&products[i%sets])
					took += time.Since(begin)
				}
				rate, most := flop*float64(b.N)/float64(took), tileFlop*float64(b.N)/float64(tiles)
				b.ReportMetric(rate, "GFLOP/s")
				b.ReportMetric(rate/most, "of-L1")
			})
		}
	}
}

// ones returns n values of bfloat16.
func ones(n, ld int) Matrix {
	x := Matrix{BF16: make([]uint16, n), LD: ld}
	for i := range x.BF16 {
		x.BF16[i] = 0x3f80
	}
	return x
}

// Panels of tiles whose operands stay in the level-1 cache.
const (
	tileSteps  = 8
	tilePanels = 64
	tileFlop   = 2 * amxPair * amxPair * tileValues * tileSteps * tilePanels
)

// tileTime returns how long they take.
func (w *AMXWork) tileTime() time.Duration {
	w.args = amxArgs{
		config: unsafe.Pointer(&w.config), steps: tileSteps, panels: tilePanels,
		a: unsafe.Pointer(&w.group[0]), aRow: CacheLine, aStep: amxTile, aTile: tileSteps * amxTile,
		b: unsafe.Pointer(&w.block[0]), bRow: CacheLine, bStep: amxTile, bTile: tileSteps * amxTile,
		sums: unsafe.Pointer(&w.strip[0]), row: amxPair * WordSize,
	}
	begin := time.Now()
	w.run(amxPair, amxPair)
	return time.Since(begin)
}
