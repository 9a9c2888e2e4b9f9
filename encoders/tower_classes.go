package encoders

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/layout"
)

// ClassTower stands for a frozen tower whose class tokens were computed before: it reads them as a column.
type ClassTower struct {
	Tower         // the frozen one
	Column string // name of the column
}

var _ Tower = ClassTower{}

// Columns is a row of class tokens, (m D).
func (t ClassTower) Columns() []batch.Column {
	_, width := t.Shape()
	return []batch.Column{{Name: t.Column, Shape: []int{t.Classes() * width}}}
}

// Encode returns the class tokens (R*m, D). There are no other tokens.
func (t ClassTower) Encode(_ *Context, _ Scope, in Inputs, want Want) Sequence {
	x := in[t.Column]
	if want.Tokens {
		misuse("class tokens", x, "no other tokens were kept")
	}
	length, width := t.Shape()
	q := Sequence{Classes: x, Len: length, Width: width}
	if m := t.Classes(); m > 1 {
		q.Classes = layout.Reshape(x, x.Shape()[0]*m, width)
	}
	return q
}
