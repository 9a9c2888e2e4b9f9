package interaction

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// rowsOnCUDA are rows as floats, and as products read them: the same where these read floats, or do not read the rows.
type rowsOnCUDA struct{ values, read cuda.Matrix }

// both asks for rows that products read, or not.
func (b *vectorsOnCUDA) both(n, cols int, read bool) rowsOnCUDA {
	r := rowsOnCUDA{values: b.floatRows(n, cols)}
	if r.read = r.values; read && b.product != exec.Float32 {
		r.read = b.read(n, cols)
	}
	return r
}

// half is where a kernel writes rows as products read them besides their values, nil where these are all.
func (b *vectorsOnCUDA) half(r rowsOnCUDA) any {
	if r.read == r.values {
		return nil
	}
	return b.at(r.read.At)
}

// wholes are the first nodes of pairs, of rows of nodes.
func (b *vectorsOnCUDA) wholes(m cuda.Matrix) cuda.Matrix {
	m.LD *= 1 + b.sides[textSide].len
	return m
}
