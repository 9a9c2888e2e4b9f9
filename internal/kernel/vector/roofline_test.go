package vector

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// roof is a kernel and what it costs for each element, from its source: bytes read and
// written once each, and instructions of one vector of float32.
type roof struct {
	name  string
	bytes float64
	// mul counts instructions that the multipliers execute (products, sums of products,
	// rounding), of which a cycle takes one of 512 bits or two of 256; all counts these
	// and all others that compute, of which it takes twice as many; div counts divisions
	// and square roots, which take divCycles each for 512 bits.
	mul, all, div float64
	// narrow are the instructions that AVX2 needs more.
	narrow float64
	slices int // of full length
	run    func(s, rows [][]float32, bits []int32)
}

// divCycles is how long the divider is busy with 16 float32 values (Zen 4; Intel's
// processors with AVX-512 take 10 too).
const divCycles = 10

// roofRow is the width of the rows that kernels of rows work on: a model's.
const roofRow = 768

// eachRow calls f with the rows of every slice.
func eachRow(s [][]float32, f func(lo, hi int)) {
	for lo := 0; lo+roofRow <= len(s[0]); lo += roofRow {
		f(lo, lo+roofRow)
	}
}

// Instructions of exp with and without limits on its argument.
const (
	expMul, expAll   = 11, 13
	tailMul, tailAll = 1 + 1 + 11 + 9 + 1, 1 + 1 + 11 + 9 + 1 + 2
	expNarrow        = 7
	bitsBytes        = 1. / 8
)

// roofs lists every vector kernel.
var roofs = []roof{
	{"Add", 12, 0, 1, 0, 0, 3, func(s, _ [][]float32, _ []int32) { Add(s[0], s[1], s[2]) }},
	{"Sub", 12, 0, 1, 0, 0, 3, func(s, _ [][]float32, _ []int32) { Sub(s[0], s[1], s[2]) }},
	{"Mul", 12, 1, 1, 0, 0, 3, func(s, _ [][]float32, _ []int32) { Mul(s[0], s[1], s[2]) }},
	{"Scale", 8, 1, 1, 0, 0, 2, func(s, _ [][]float32, _ []int32) { Scale(s[0], 1.5, s[1]) }},
	{"MulAdd", 16, 1, 1, 0, 0, 3, func(s, _ [][]float32, _ []int32) { MulAdd(s[0], s[1], s[2]) }},
	{"Axpy", 12, 1, 1, 0, 0, 2, func(s, _ [][]float32, _ []int32) { Axpy(s[0], 1e-9, s[1]) }},
	{"Axpby", 12, 2, 2, 0, 0, 3, func(s, _ [][]float32, _ []int32) { Axpby(s[0], 1.5, s[1], 0.5, s[2]) }},
	{"Fill", 4, 0, 0, 0, 0, 1, func(s, _ [][]float32, _ []int32) { Fill(s[0], 1.5) }},
	{"EMA", 12, 1, 2, 0, 0, 2, func(s, _ [][]float32, _ []int32) { EMA(s[0], s[1], 0.01) }},
	{"Sum", 4, 0, 4, 0, 0, 1, func(s, _ [][]float32, _ []int32) { Sum(s[0]) }},
	{"SumSq", 4, 2, 4, 0, 0, 1, func(s, _ [][]float32, _ []int32) { SumSq(s[0]) }},
	{"Dot", 8, 2, 6, 0, 0, 2, func(s, _ [][]float32, _ []int32) { Dot(s[0], s[1]) }},
	{"Max", 4, 0, 1.5, 0, 0, 1, func(s, _ [][]float32, _ []int32) { Max(s[0]) }},
	{"AddRows", 8, 0, 1, 0, 0, 1, func(s, rows [][]float32, _ []int32) { AddRows(s[0][:len(s[0])/roofRow*roofRow], rows[0]) }},
	{"SumRows", 4, 0, 1, 0, 0, 1, func(s, rows [][]float32, _ []int32) { SumRows(rows[2], s[0][:len(s[0])/roofRow*roofRow]) }},
	{"Exp", 8, expMul, expAll, 0, expNarrow, 2, func(s, _ [][]float32, _ []int32) { Exp(s[0], s[1]) }},
	{"ExpSum", 8, expMul, expAll + 2, 0, expNarrow, 2, func(s, _ [][]float32, _ []int32) { ExpSum(s[0], s[1], 1) }},
	{"SumExp", 4, expMul, expAll + 2, 0, expNarrow, 1, func(s, _ [][]float32, _ []int32) { SumExp(s[0], 1) }},
	{"SumExpMax", 4, expMul, expAll + 3, 0, expNarrow, 1, func(s, _ [][]float32, _ []int32) { SumExpMax(s[0], 1) }},
	{"SumExpDotMax", 8, expMul + 1, expAll + 5, 0, expNarrow, 2, func(s, _ [][]float32, _ []int32) { SumExpDotMax(s[0], s[1], 1) }},
	{"SoftmaxDiff", 8, expMul + 1, expAll + 2, 0, expNarrow, 2, func(s, _ [][]float32, _ []int32) { SoftmaxDiff(s[0], s[1], 1, 2) }},
	{"SoftmaxDiff2", 12, 2*expMul + 2, 2*expAll + 4, 0, 2 * expNarrow, 3, func(s, _ [][]float32, _ []int32) { SoftmaxDiff2(s[0], s[1], s[2], 1, 2, 3, 4) }},
	{"Softmax rows", 8, expMul + 1, expAll + 4.5, 0, expNarrow, 2, func(s, _ [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) { Softmax(s[0][lo:hi], s[1][lo:hi]) })
	}},
	{"SoftmaxGradRow rows", 12, 3, 8, 0, 0, 3, func(s, _ [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) { SoftmaxGradRow(s[0][lo:hi], s[1][lo:hi], s[2][lo:hi]) })
	}},
	{"GELU", 8, tailMul + 1, tailAll + 3, 1, expNarrow - 2, 2, func(s, _ [][]float32, _ []int32) { GELU(s[0], s[1]) }},
	{"BiasGELU rows", 12, tailMul + 1, tailAll + 4, 1, expNarrow - 2, 2, func(s, rows [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) { BiasGELU(s[1][lo:hi], s[0][lo:hi], rows[0]) })
	}},
	{"GRU", 36, 3*expMul + 3, 3*expAll + 10, 3, 3 * expNarrow, 5, func(s, _ [][]float32, _ []int32) { GRU(s[0], s[1], s[2], s[3], s[4]) }},
	{"GRUGrad", 48, 10, 14, 0, 0, 7, func(s, _ [][]float32, _ []int32) { GRUGrad(s[0], s[1], s[2], s[3], s[4], s[5], s[6]) }},
	{"GELUGrad", 12, tailMul + 3, tailAll + 8, 1, expNarrow - 2, 3, func(s, _ [][]float32, _ []int32) { GELUGrad(s[0], s[1], s[2]) }},
	{"LayerNorm rows", 8, 3, 6, 0, 0, 2, func(s, rows [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) { LayerNorm(s[0][lo:hi], s[1][lo:hi], rows[0], rows[1], 1e-5) })
	}},
	{"LayerNormGrad rows", 12, 8, 14, 0, 0, 3, func(s, rows [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) {
			LayerNormGrad(s[0][lo:hi], rows[2], rows[3], s[1][lo:hi], rows[0], s[2][lo:hi], 0.1, 0.2)
		})
	}},
	{"LayerNormGradAdd rows", 16, 8, 15, 0, 0, 4, func(s, rows [][]float32, _ []int32) {
		eachRow(s, func(lo, hi int) {
			LayerNormGradAdd(s[0][lo:hi], rows[2], rows[3], s[1][lo:hi], rows[0], s[2][lo:hi], s[3][lo:hi], 0.1, 0.2)
		})
	}},
	{"Dropout", 8 + bitsBytes, 1, 1, 0, 3, 2, func(s, _ [][]float32, b []int32) { Dropout(s[0], s[1], b, 1.1) }},
	{"DropoutAdd", 12 + bitsBytes, 1, 2, 0, 3, 3, func(s, _ [][]float32, b []int32) { DropoutAdd(s[0], s[1], s[2], b, 1.1) }},
	{"DropoutBits", bitsBytes, 5, 10, 0, 18, 1, func(s, _ [][]float32, b []int32) { DropoutBits(b, 1, 2, 0.9) }},
	{"Acos", 8, 9, 15, 1, 2, 2, func(s, _ [][]float32, _ []int32) { Acos(s[0], s[1], 1) }},
	{"AcosGrad", 12, 1, 4, 2, 0, 3, func(s, _ [][]float32, _ []int32) { AcosGrad(s[0], s[1], s[2], AcosLimit) }},
	{"MinPlus", 12, 0, 2, 0, 0, 2, func(s, _ [][]float32, _ []int32) { MinPlus(s[0], s[1], 1.5) }},
	{"ArgMax", 4, 0, 1, 0, 0, 1, func(s, _ [][]float32, _ []int32) { ArgMax(s[0]) }},
	{"PathCos", 12, 8, 13, 0, 0, 2, func(s, _ [][]float32, _ []int32) { PathCos(s[0], pathEntries, owners(s[0]), s[1], 6) }},
	{"PathCosSlope", 16, 12, 21, 0, 0, 3, func(s, _ [][]float32, _ []int32) {
		PathCosSlope(s[0], pathEntries, owners(s[0]), s[1], s[2], 6)
	}},
	{"AdamWEMA", 36, 10, 13, 2, 0, 5, func(s, _ [][]float32, _ []int32) { AdamWEMA(s[0], s[1], s[2], s[3], s[4], testAdamW, 0.01) }},
	{"AdamW", 28, 9, 11, 2, 0, 4, func(s, _ [][]float32, _ []int32) { AdamW(s[0], s[1], s[2], s[3], testAdamW) }},
}

// fastest returns the shortest time of one call of f, in seconds.
func fastest(total time.Duration, f func()) float64 {
	f()
	start := time.Now()
	f()
	calls := int(max(1, 20*time.Microsecond/max(1, time.Since(start))))
	best := math.Inf(1)
	for begun := time.Now(); time.Since(begun) < total; {
		start := time.Now()
		for range calls {
			f()
		}
		best = min(best, time.Since(start).Seconds()/float64(calls))
	}
	return best
}

// fastestParts returns the sum over parts of the shortest time of f(part), in seconds:
// what all take, one after the other, when nobody disturbs them.
func fastestParts(total time.Duration, parts int, f func(part int)) (sum float64) {
	best := make([]float64, parts)
	for i := range best {
		best[i] = math.Inf(1)
	}
	for begun := time.Now(); time.Since(begun) < total || math.IsInf(best[parts-1], 1); {
		for i := range best {
			start := time.Now()
			f(i)
			best[i] = min(best[i], time.Since(start).Seconds())
		}
	}
	for _, t := range best {
		sum += t
	}
	return sum
}

var sinkWord uint64

// clockHz measures the clock by a chain of integer products, three cycles each.
func clockHz() float64 {
	const n = 10000
	return 3 * n / fastest(20*time.Millisecond, func() {
		x := sinkWord | 1
		for range n {
			x *= goldenGamma
		}
		sinkWord = x
	})
}

// BenchmarkRoofline reports for every vector kernel, on slices in the second-level
// cache and on slices that no cache holds, the gigabytes a second that it reads and
// writes on one thread and their share of the limit: what the sum of two arrays reads
// and writes on slices of the same kind, measured in the same process, or what the
// vector units could do, whichever is less.
func BenchmarkRoofline(b *testing.B) {
	defer cpu.SetLevel(cpu.Level())
	hz := clockHz()
	for _, size := range []struct {
		name         string
		parts, bytes int
	}{{"cache", 1, 384 << 10}, {"memory", 96, 1 << 20}} {
		backing := make([]float32, size.parts*size.bytes/4)
		measure := func(k roof) float64 { // elements a second
			for i := range 13 {
				backing[i] = float32(i)/4 - 1.5
			}
			for n := 13; n < len(backing); n *= 2 {
				copy(backing[n:], backing[:n])
			}
			rows := make([][]float32, 4)
			for i := range rows {
				rows[i] = append([]float32{}, backing[:roofRow]...)
			}
			// Each slice is contiguous; a part is a piece of each.
			n := size.bytes / 4 / k.slices / 768 * 768
			bits := make([]int32, size.parts*n/32)
			DropoutBits(bits, 1, 2, 0.9)
			parts := make([][][]float32, size.parts)
			for p := range parts {
				for i := range k.slices {
					at := (i*size.parts + p) * n
					parts[p] = append(parts[p], backing[at:at+n])
				}
			}
			run := func(p int) { k.run(parts[p], rows, bits[p*n/32:(p+1)*n/32]) }
			if size.parts == 1 {
				return float64(n) / fastest(20*time.Millisecond, func() { run(0) })
			}
			return float64(n*size.parts) / fastestParts(60*time.Millisecond, size.parts, run)
		}
		for _, level := range []string{cpu.AVX2, cpu.AVX512} {
			cpu.SetLevel(level)
			if cpu.Level() != level {
				continue
			}
			for _, k := range roofs {
				b.Run(fmt.Sprintf("%s/%s/%s", level, size.name, k.name), func(b *testing.B) {
					for range b.N {
						sinkWord++
					}
					// In turns, as others may use the machine at times.
					var achieved, add float64
					for range 3 {
						add, achieved = max(add, measure(roofs[0])), max(achieved, measure(k))
					}
					limit := min(12*add/k.bytes, k.units(level, hz))
					b.ReportMetric(k.bytes*achieved/1e9, "GB/s")
					b.ReportMetric(achieved/1e9, "elements/ns")
					b.ReportMetric(100*achieved/limit, "share")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// units returns the elements a second that the vector units could do.
func (k roof) units(level string, hz float64) float64 {
	mul, all := k.mul, k.all
	if level == cpu.AVX2 {
		mul, all = mul+k.narrow/2, all+k.narrow
	}
	cycles := max(mul, all/2, k.div*divCycles) // of 16 elements
	if cycles == 0 {
		return math.Inf(1)
	}
	return 16 * hz / cycles
}
