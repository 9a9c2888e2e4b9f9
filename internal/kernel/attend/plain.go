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

func (p *plainAttention) ahead([]float32, int, int) {}

func (p *plainAttention) begin(int) {}

func (p *plainAttention) setKeys(keys sequence) { p.keys = keys }

func (p *plainAttention) scores(s, x []float32, ldx, rows int, alpha float32, of keyOrValue) {
	x, ldx = p.round(0, x, ldx, rows, p.width, rows)
	y, ldy := p.round(1, p.keys.of[of], p.keys.ld, p.keys.n, p.width, rows)
	gemm.Plain{}.SGEMM(false, true, rows, p.keys.n, p.width, alpha, x, ldx, y, ldy, 0, s, p.stride)
}

func (p *plainAttention) weigh(y []float32, ldy int, s []float32, rows int, alpha float32, of keyOrValue) {
	s, lds := p.round(0, s, p.stride, rows, p.keys.n, rows)
	x, ldx := p.round(1, p.keys.of[of], p.keys.ld, p.keys.n, p.width, rows)
	gemm.Plain{}.SGEMM(false, false, rows, p.width, p.keys.n, alpha, s, lds, x, ldx, 0, y, ldy)
}

func (p *plainAttention) spread(y []float32, ldy int, s, x []float32, ldx, rows int, alpha float32, add bool) {
	s, lds := p.round(0, s, p.stride, rows, p.keys.n, rows)
	x, ldx = p.round(1, x, ldx, rows, p.width, rows)
	var beta float32
	if add {
		beta = 1
	}
	gemm.Plain{}.SGEMM(true, false, p.keys.n, p.width, rows, alpha, s, lds, x, ldx, beta, y, ldy)
}

// round returns m x n values rounded to bfloat16 if that is asked for and there are
// more than a few queries.
func (p *plainAttention) round(i int, x []float32, ld, m, n, queries int) ([]float32, int) {
	if !p.rounded || queries <= fewQueries {
		return x, ld
	}
	roundRows(p.memory[i], x, ld, m, n, n)
	return p.memory[i], n
}

// roundRows sets rows of dst, stride floats apart, to m rows of n values of x rounded
// to bfloat16.
func roundRows(dst, x []float32, ld, m, n, stride int) {
	for r := range m {
		vector.RoundBF16(dst[r*stride:r*stride+n], x[r*ld:])
	}
}
