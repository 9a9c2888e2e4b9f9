package encoders

import "github.com/geoalign/geoalign/data/batch"

// ImageTower is a vision transformer as a tower.
type ImageTower struct{ ViT }

var _ Tower = ImageTower{}

// Columns is the image, (3, S, S).
func (t ImageTower) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, t.Size, t.Size}}}
}

// Classes returns m.
func (t ImageTower) Classes() int { return t.classes() }

// Shape returns the tokens of a row and their width.
func (t ImageTower) Shape() (length, width int) { return t.ViT.Tokens(), t.ViT.Width }

// Encode encodes images (R, 3, S, S). Without tokens the last block computes no query but
// those of the class tokens.
func (t ImageTower) Encode(_ *Context, s Scope, in Inputs, want Want) Sequence {
	q := Sequence{Len: t.Tokens(), Width: t.Width}
	if want.Tokens {
		q.Tokens, q.Classes = t.ViT.Encode(s, in[batch.Images])
	} else {
		q.Classes = t.Class(s, in[batch.Images])
	}
	return q
}
