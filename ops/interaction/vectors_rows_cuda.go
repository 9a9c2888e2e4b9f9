package interaction

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// rowsOnCUDA are rows in scratch: values as floats, one behind the other, and rounded as products read them, ld apart. Where
// products read floats and there are values, they read these.
type rowsOnCUDA struct {
	values, rounded cuda.Pointer
	cols, ld        int
}

// values asks for rows of floats alone.
func (b *vectorsOnCUDA) values(n, cols int) rowsOnCUDA {
	return rowsOnCUDA{values: b.floats(n * cols), cols: cols, ld: cols}
}

// read asks for rows that products read alone.
func (b *vectorsOnCUDA) read(n, cols int) rowsOnCUDA {
	r := rowsOnCUDA{cols: cols, ld: cols}
	bytes := int64(4)
	if b.product == exec.BFloat16 {
		r.ld, bytes = (cols+7)/8*8, 2
	}
	r.rounded = b.room.Take(bytes * int64(n) * int64(r.ld))
	return r
}

// both asks for rows in both forms.
func (b *vectorsOnCUDA) both(n, cols int) rowsOnCUDA {
	r := b.values(n, cols)
	if r.rounded = r.values; b.product != exec.Float32 {
		half := b.read(n, cols)
		r.rounded, r.ld = half.rounded, half.ld
	}
	return r
}

// matrixOf is the values of rows.
func (b *vectorsOnCUDA) matrixOf(r rowsOnCUDA) cuda.Matrix { return floatsAt(b.at(r.values), r.cols) }

// factor is rows as products read them.
func (b *vectorsOnCUDA) factor(r rowsOnCUDA) cuda.Matrix {
	return cuda.Matrix{At: b.at(r.rounded), LD: r.ld, Type: b.product}
}

// half is where a kernel writes rows of both forms besides their values, nil where products read these.
func (b *vectorsOnCUDA) half(r rowsOnCUDA) any {
	if b.product == exec.Float32 {
		return nil
	}
	return b.at(r.rounded)
}

// wholes are the first nodes of pairs, of rows of nodes.
func (b *vectorsOnCUDA) wholes(m cuda.Matrix) cuda.Matrix {
	m.LD *= 1 + b.sides[textSide].len
	return m
}
