package attend

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// plainAttention does the products of attention in Go.
type plainAttention struct {
	// rounded: operands are rounded to bfloat16.
	rounded bool
	width   int
	stride  int
	keys    sequence
	memory  [2][]float32 // for rounded copies of both operands
}

func newPlainAttention(s Sizes, rounded bool) *plainAttention {
	return &plainAttention{rounded: rounded, width: s.Width, stride: scoreStride(s.Keys)}
}

func (p *plainAttention) use(memory []float32) {
	p.memory[0], p.memory[1] = memory[:len(memory)/2], memory[len(memory)/2:]
}

func (p *plainAttention) ahead(gemm.Matrix, int) {}

func (p *plainAttention) begin(int) {}

func (p *plainAttention) setKeys(keys sequence) { p.keys = keys }

func (p *plainAttention) scores(s []float32, x gemm.Matrix, rows int, alpha float32, of keyOrValue) {
	x = p.round(0, x, rows, p.width, rows)
	y := p.round(1, p.keys.of[of], p.keys.n, p.width, rows)
	gemm.Plain{}.SGEMM(false, true, rows, p.keys.n, p.width, alpha, x.F32, x.LD, y.F32, y.LD, 0, s, p.stride)
}

func (p *plainAttention) weigh(y gemm.Matrix, s []float32, rows int, alpha float32, of keyOrValue) {
	a := p.round(0, gemm.Matrix{F32: s, LD: p.stride}, rows, p.keys.n, rows)
	x := p.round(1, p.keys.of[of], p.keys.n, p.width, rows)
	gemm.Plain{}.SGEMM(false, false, rows, p.width, p.keys.n, alpha, a.F32, a.LD, x.F32, x.LD, 0, y.F32, y.LD)
}

func (p *plainAttention) spread(y []float32, ldy int, s []float32, x gemm.Matrix, rows int, alpha float32, add bool) {
	a := p.round(0, gemm.Matrix{F32: s, LD: p.stride}, rows, p.keys.n, rows)
	x = p.round(1, x, rows, p.width, rows)
	var beta float32
	if add {
		beta = 1
	}
	gemm.Plain{}.SGEMM(true, false, p.keys.n, p.width, rows, alpha, a.F32, a.LD, x.F32, x.LD, beta, y, ldy)
}

// round returns m x n values rounded to bfloat16 if that is asked for and there are
// more than a few queries.
func (p *plainAttention) round(i int, x gemm.Matrix, m, n, queries int) gemm.Matrix {
	if !p.rounded || queries <= fewQueries {
		return x
	}
	roundRows(p.memory[i], x.F32, x.LD, m, n, n)
	return gemm.Matrix{F32: p.memory[i], LD: n}
}

// roundRows sets rows of dst, stride floats apart, to m rows of n values of x rounded
// to bfloat16.
func roundRows(dst, x []float32, ld, m, n, stride int) {
	for r := range m {
		vector.RoundBF16(dst[r*stride:r*stride+n], x[r*ld:])
	}
}
