package encoders

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Tower encodes the rows of one modality. What it reads it says by Columns; what a caller
// reads of the result it says by Want, and nothing else is computed. The same tower builds
// the online side, the momentum encoder and the computation of inference.
type Tower interface {
	// Columns are the columns of a batch that Encode reads.
	Columns() []batch.Column
	// Classes returns m, the class tokens of a sequence.
	Classes() int
	// Shape returns Len and Width of the sequences.
	Shape() (length, width int)
	// Encode adds the tower to the computation for R rows of its columns.
	Encode(c *Context, s Scope, in Inputs, want Want) Sequence
}

// Shorter is a tower of texts that can leave out places which are padding in all rows.
type Shorter interface {
	Tower
	// Shortens says whether padding changes nothing, so that it can.
	Shortens() bool
	// Shorter returns the tower of texts of l places, at most its own: columns have as many, and what stands for a
	// text of at most l tokens is the same.
	Shorter(l int) Tower
}

// Inputs are the nodes of a tower's columns by their names, (R, shape...). A column with
// one axis or none may come flat, (R*L) or (R).
type Inputs map[string]*gorgonia.Node

// Want says what is read of a sequence.
type Want struct {
	Tokens  bool // the states of all tokens
	Classes bool // the class tokens, which heads read
}

// Sequence is R rows of tokens as a tower gives them: the first class token of each row
// and its patches, words or regions, Len tokens of Width channels.
type Sequence struct {
	Tokens  *gorgonia.Node // (R*Len, Width); nil unless wanted
	Lengths *gorgonia.Node // (R) int32, tokens of each row that are no padding; nil: all
	Classes *gorgonia.Node // (R*m, Width), all class tokens; nil unless wanted
	Second  *gorgonia.Node // (R*m, Width), the class tokens of a second masked view; nil without
	Len     int            // tokens of a row
	Width   int            // channels of a token
	Begin   int            // of them before patches, words or regions: class tokens, what begins a text
	End     int            // of Lengths behind the words: what ends a text
}

// First returns the first token of each of the first n rows: (n, Width).
func (q Sequence) First(n int) *gorgonia.Node { return layout.StridedRows(q.Tokens, 0, q.Len, n) }

// Head maps the class tokens of sequences to features in the shared space.
type Head interface {
	// Classes returns m, the class tokens of a sequence that the head reads.
	Classes() int
	// Project maps class tokens (R*m, D) to features (R, C).
	Project(c *Context, s Scope, classes *gorgonia.Node) *gorgonia.Node
	// Dimension returns C.
	Dimension() int
}

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
