package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/geometric"
	"gorgonia.org/gorgonia"
)

// Dropout places of the points of both sides, apart from those of the towers and of the
// teacher's: no tower has that many.
const (
	imagePointSites = 2 << 16
	textPointSites  = 3 << 16
)

// pooled is the term for heads of any depth over features that are stored: a sample names the points of its neighbourhood by
// rows of a pool, in the columns batch.ImageNeighbours and batch.TextNeighbours. The points pass the head as in training,
// with dropout masks of their own, some anchors at a time.
func (l *Geometric) pooled(s *Step) (parts []Part) {
	if l.Images() {
		Need(s.ImagePool != nil, "geometric", "needs the pool of image features: give it in Options.ImagePool")
		parts = append(parts, s.Part("geometric_image", l.Weight, l.inPool(s, s.Online.Image, s.ImagePool, batch.ImageNeighbours, imagePointSites)))
	}
	if l.Texts() {
		Need(s.TextPool != nil, "geometric", "needs the pool of text features: give it in Options.TextPool")
		parts = append(parts, s.Part("geometric_text", l.Weight, l.inPool(s, s.Online.Text, s.TextPool, batch.TextNeighbours, textPointSites)))
	}
	return parts
}

// inPool is the term of a side.
func (l *Geometric) inPool(s *Step, x Side, pool batch.Pool, column string, sites uint64) *gorgonia.Node {
	Need(pool.Width() == x.Width, "geometric", "the pool has rows of %d values, the features of the side %d: use features of one encoder", pool.Width(), x.Width)
	Need(x.Head.Classes() == 1, "geometric", "a feature of a pool is one class token, and the head reads %d", x.Head.Classes())
	return geometric.Pooled(geometric.PooledArgs{
		Neighbours: s.Column(batch.Column{Name: column, Shape: []int{l.Neighbours}, Type: batch.Int32}, s.Rows),
		Pool:       pool, Key: s.Student.DropoutKey, First: s.Rows * s.Ranks.rank(), Chunk: l.Chunk,
		Kernel: l.Kernel, Epsilon: float32(l.Epsilon), Scale: l.Scale,
		Head: func(points, key *gorgonia.Node) (rows *gorgonia.Node, parameters []geometric.Parameter) {
			c := &encoders.Context{DropoutKey: key}
			c.SkipSites(sites)
			scope := x.Scope.Copied(points.Graph(), func(parameter, input *gorgonia.Node) {
				parameters = append(parameters, geometric.Parameter{Node: parameter, Copy: input})
			})
			return x.Head.Project(c, scope, points), parameters
		},
	})
}
