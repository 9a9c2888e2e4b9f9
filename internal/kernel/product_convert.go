package kernel

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// scratch holds a converted operand. It grows to the largest product and is then
// used again.
type scratch struct {
	f32  []float32
	bf16 []uint16
}

// matrix returns a matrix of rows x columns for the path, that holds anything.
func (s *scratch) matrix(w path, rows, columns int) gemm.Matrix {
	n := rows * columns
	if w == pathLibrary {
		if cap(s.bf16) < n {
			s.bf16 = make([]uint16, n)
		}
		return gemm.Matrix{BF16: s.bf16[:n], LD: columns}
	}
	if cap(s.f32) < n {
		s.f32 = make([]float32, n)
	}
	return gemm.Matrix{F32: s.f32[:n], LD: columns}
}

// operandScratch is the scratch of one product.
type operandScratch struct{ a, b scratch }

// conversion is the conversion of an operand on all threads.
type conversion struct {
	to, from gemm.Matrix
	columns  int
	round    bool
	part     func(worker, lo, hi int)
}

// leastConverted is the number of values worth a thread.
const leastConverted = 1 << 14

// convert replaces the operands of p that have another type than the path takes,
// on all threads if parallel.
func (e *Engine) convert(p *gemm.Product, w path, s *operandScratch, parallel bool) {
	rows, columns := p.StoredA()
	p.A = e.convertOperand(p, w, &s.a, p.A, rows, columns, parallel)
	rows, columns = p.StoredB()
	p.B = e.convertOperand(p, w, &s.b, p.B, rows, columns, parallel)
	if w == pathFloat {
		p.BF16 = false
	}
}

// convertOperand returns x as the path takes it.
func (e *Engine) convertOperand(p *gemm.Product, w path, s *scratch, x gemm.Matrix, rows, columns int,
	parallel bool) gemm.Matrix {
	if w == pathLibrary && x.BF16 != nil || w == pathFloat && x.BF16 == nil && !p.BF16 {
		return x
	}
	to := s.matrix(w, rows, columns)
	if !parallel {
		convertRows(to, x, rows, columns, p.BF16)
		return to
	}
	c := &e.conversion
	c.to, c.from, c.columns, c.round = to, x, columns, p.BF16
	e.For(rows, max(1, leastConverted/max(1, columns)), c.part)
	c.to, c.from = gemm.Matrix{}, gemm.Matrix{}
	return to
}

// convertPart converts rows lo to hi of the operand in progress.
func (e *Engine) convertPart(_, lo, hi int) {
	c := &e.conversion
	convertRows(c.to.From(lo*c.to.LD), c.from.From(lo*c.from.LD), hi-lo, c.columns, c.round)
}

// convertRows sets the rows of dst to those of src. Float32 values are rounded to
// bfloat16 if asked.
func convertRows(dst, src gemm.Matrix, rows, columns int, round bool) {
	for i := range rows {
		d, s := i*dst.LD, i*src.LD
		switch {
		case src.BF16 != nil:
			vector.FromBF16(dst.F32[d:d+columns], src.BF16[s:s+columns])
		case dst.BF16 != nil:
			vector.ToBF16(dst.BF16[d:d+columns], src.F32[s:s+columns])
		case round:
			vector.RoundBF16(dst.F32[d:d+columns], src.F32[s:s+columns])
		default:
			copy(dst.F32[d:d+columns], src.F32[s:s+columns])
		}
	}
}
