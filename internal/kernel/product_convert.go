package kernel

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// scratch holds a converted operand. It grows to the largest product and is then
// used again.
type scratch []float32

// matrix returns a matrix of rows x columns that holds anything.
func (s *scratch) matrix(rows, columns int) gemm.Matrix {
	n := rows * columns
	if cap(*s) < n {
		*s = make(scratch, n)
	}
	return gemm.Matrix{F32: (*s)[:n], LD: columns}
}

// operandScratch is the scratch of one product.
type operandScratch struct{ a, b scratch }

// conversion is the conversion of an operand on all threads.
type conversion struct {
	to, from gemm.Matrix
	columns  int
	part     func(worker, lo, hi int)
}

// leastConverted is the number of values worth a thread.
const leastConverted = 1 << 14

// convert makes operands of p float32, rounded to bfloat16 where p is a product in that, on all threads if parallel.
func (e *Engine) convert(p *gemm.Product, s *operandScratch, parallel bool) {
	rows, columns := p.StoredA()
	p.A = e.convertOperand(p, &s.a, p.A, rows, columns, parallel)
	rows, columns = p.StoredB()
	p.B = e.convertOperand(p, &s.b, p.B, rows, columns, parallel)
	p.BF16 = false
}

// convertOperand returns x as float32.
func (e *Engine) convertOperand(p *gemm.Product, s *scratch, x gemm.Matrix, rows, columns int,
	parallel bool) gemm.Matrix {
	if x.BF16 == nil && !p.BF16 {
		return x
	}
	to := s.matrix(rows, columns)
	if !parallel {
		convertRows(to, x, rows, columns)
		return to
	}
	c := &e.conversion
	c.to, c.from, c.columns = to, x, columns
	e.For(rows, max(1, leastConverted/max(1, columns)), c.part)
	c.to, c.from = gemm.Matrix{}, gemm.Matrix{}
	return to
}

// convertPart converts rows lo to hi of the operand in progress.
func (e *Engine) convertPart(_, lo, hi int) {
	c := &e.conversion
	convertRows(c.to.From(lo*c.to.LD), c.from.From(lo*c.from.LD), hi-lo, c.columns)
}

// convertRows sets the rows of dst, float32, to those of src: bfloat16, or float32 rounded to it.
func convertRows(dst, src gemm.Matrix, rows, columns int) {
	for i := range rows {
		d, s := i*dst.LD, i*src.LD
		if src.BF16 != nil {
			vector.FromBF16(dst.F32[d:d+columns], src.BF16[s:s+columns])
		} else {
			vector.RoundBF16(dst.F32[d:d+columns], src.F32[s:s+columns])
		}
	}
}
