package interaction

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// gradient returns where the gradient of an operand of rows goes.
func (b *crossBlock) gradient(operand int) []float32 {
	if operand == 0 {
		return b.c.Out.F32
	}
	return b.c.Aux[operand-1].F32
}

// addSlopes adds the gradients of rows through the products of a block, and through |q|.
func (b *crossBlock) addSlopes() {
	query, context := b.query, 1-b.query
	m, n := b.span[query].rows(), b.span[context].rows()
	if m == 0 || n == 0 {
		return
	}
	for site, operands := range b.sites {
		if site == similaritySite && b.shared() {
			continue
		}
		q, k, d := operands[query], operands[context], gemm.Matrix{F32: b.dproduct[site], LD: n}
		b.addProduct(false, m, n, d, b.packed[k], b.dpacked[q])
		b.addProduct(true, n, m, d, b.packed[q], b.dpacked[k])
	}
	for i := range b.span[context].to - b.span[context].from {
		for r, d := range b.dnorms[i*b.most[query]:][:m] {
			if d != 0 {
				vector.Axpy(b.dpacked[query][r*b.channels:][:b.channels], 2*d,
					b.packed[query][r*b.channels:][:b.channels])
			}
		}
	}
}

// addProduct adds d times rows, or with transposed d^T times rows, (m, n) times (n, C).
func (b *crossBlock) addProduct(transposed bool, m, n int, d gemm.Matrix, rows, to []float32) {
	p := b.product
	p.TransA, p.TransB, p.Beta = transposed, false, 1
	p.M, p.N, p.K = m, b.channels, n
	p.A, p.B, p.C, p.LDC = d, b.matrix(rows), to, b.channels
	b.c.Engine.Multiply(p)
}

// addGrams adds the gradients of the rows of sequences of the context through G, 2 dG k.
func (b *crossBlock) addGrams(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		b.addGram(worker, 1-b.query, i, b.dgram)
	}
}

// addGram adds those of sequence i of a side.
func (b *crossBlock) addGram(worker, side, i int, dgram []float32) {
	at, n := b.span[side].of(b.span[side].from + i)
	if n == 0 {
		return
	}
	p := b.serial[worker]
	p.TransB, p.Alpha, p.Beta = false, 2, 1
	p.M, p.N, p.K = n, b.channels, n
	p.A, p.B = gemm.Matrix{F32: b.gramIn(side, dgram, i), LD: n}, b.matrix(b.packed[side][at*b.channels:])
	p.C, p.LDC = b.dpacked[side][at*b.channels:], b.channels
	b.c.Engine.MultiplySerial(p)
}

// unpack adds the gradients of the rows of a side of the block to the results.
func (b *crossBlock) unpack(side int) {
	s, span := b.sides[side], &b.span[side]
	for k := range b.rows {
		if b.of[k] != side {
			continue
		}
		to := b.gradient(k)
		for i := span.from; i < span.to; i++ {
			at, n := span.of(i)
			rows := to[(i*s.len+s.first)*b.channels:][:n*b.channels]
			vector.Add(rows, rows, b.dpacked[k][at*b.channels:][:n*b.channels])
		}
	}
}
