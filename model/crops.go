package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
)

// crops are further, smaller views of an image (multi-crop, Caron et al. 2020, section 3.2).
type crops struct {
	tower       encoders.Tower // of images of their size, with the parameters of the image tower
	count, size int
}

// column is that of the batch.
func (c crops) column() batch.Column {
	return batch.Column{Name: batch.Crops, Shape: []int{c.count, 3, c.size, c.size}}
}

// crops encodes the small views of the batch, all together: their features come image by image.
func (b *builder) crops() {
	c, x, s := b.design.crops, b.design.image, b.s
	if c.count == 0 {
		return
	}
	n := s.Rows * c.count
	scope, context := b.scope(s.Params, x.name), s.Student
	if x.frozen {
		scope, context = scope.As(encoders.Traits{Locked: true}), &encoders.Context{}
	}
	in := encoders.Inputs{batch.Images: s.Shaped(c.column(), s.Rows, n, 3, c.size, c.size)}
	q := c.tower.Encode(context, scope, in, encoders.Want{Classes: true})
	s.Crops = x.head.Project(s.Student, b.scope(s.Params, x.proj), q.Classes) // (B*V, C)
}
