package encoders

import "github.com/geoalign/geoalign/data/batch"

// TextTower is the text layers of a BERT as a tower.
type TextTower struct {
	BERT
	Tokens int // L, token places of a text
}

var _ Tower = TextTower{}

// Columns are the ids of a text, (L), and how many of them are no padding.
func (t TextTower) Columns() []batch.Column {
	return []batch.Column{
		{Name: batch.Tokens, Shape: []int{t.Tokens}, Type: batch.Int32},
		{Name: batch.Lengths, Type: batch.Int32},
	}
}

// Classes returns m.
func (t TextTower) Classes() int { return t.classes() }

// Shape returns the tokens of a row and their width.
func (t TextTower) Shape() (length, width int) { return t.Tokens, t.BERT.Width }

// Encode encodes R texts. With tokens alone a text has one class token, whatever Classes
// says; without tokens the last layer computes no query but those of the class tokens.
func (t TextTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	ids, q := in[batch.Tokens], Sequence{Lengths: in[batch.Lengths], Len: t.Tokens, Width: t.Width}
	if want.Classes {
		q.Tokens, q.Classes = t.TextClasses(c, s, TextArgs{IDs: ids, Lengths: q.Lengths, Len: t.Tokens}, want.Tokens)
	} else {
		q.Tokens = t.Text(c, s, TextArgs{IDs: ids, Lengths: q.Lengths, Len: t.Tokens}, nil)
	}
	return q
}
