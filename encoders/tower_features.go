package encoders

import "github.com/geoalign/geoalign/data/batch"

// FeatureTower is the identity: rows of a frozen encoder, which are one class token each.
// It has no parameters.
type FeatureTower struct {
	Column string // name of the column
	Dim    int    // D
}

var _ Tower = FeatureTower{}

// Columns is the feature row, (D).
func (t FeatureTower) Columns() []batch.Column {
	return []batch.Column{{Name: t.Column, Shape: []int{t.Dim}}}
}

// Classes returns 1.
func (t FeatureTower) Classes() int { return 1 }

// Shape returns the tokens of a row and their width.
func (t FeatureTower) Shape() (length, width int) { return 1, t.Dim }

// Encode returns the rows (R, D) as they are.
func (t FeatureTower) Encode(_ *Context, _ Scope, in Inputs, want Want) Sequence {
	x := in[t.Column]
	columns("features", x)
	return Sequence{Tokens: x, Classes: x, Len: 1, Width: t.Dim}
}
