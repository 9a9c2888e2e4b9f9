package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// roundedRows are rows as floats, and as products read them: the same where these read floats, or do not read the rows.
type roundedRows struct{ values, read cuda.Matrix }

// both asks for rows that products read, or not.
func (b *vectorsWork) both(n, cols int, read bool) roundedRows {
	r := roundedRows{values: b.floatRows(n, cols)}
	if r.read = r.values; read && b.product != exec.Float32 {
		r.read = b.read(n, cols)
	}
	return r
}

// half is where a kernel writes rows as products read them besides their values, nil where these are all.
func (b *vectorsWork) half(r roundedRows) any {
	if r.read == r.values {
		return nil
	}
	return b.at(r.read.At)
}

// wholes are the first nodes of pairs, of rows of nodes.
func (b *vectorsWork) wholes(m cuda.Matrix) cuda.Matrix {
	m.LD *= 1 + b.Sides[textSide].Len
	return m
}
