package encoders

import "github.com/geoalign/geoalign/batch"

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
func (t ImageTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	images := in[batch.Images]
	q, v := Sequence{Len: t.Tokens(), Width: t.Width, Begin: t.Tokens() - t.Patches()}, t.keeping(c, images.Shape()[0])
	if want.Tokens {
		q.Tokens, q.Classes = v.Encode(s, images)
	} else {
		q.Classes = v.Class(s, images)
	}
	return q
}
