package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/geometric"
	"gorgonia.org/gorgonia"
)

// GeometricPool is the geometric term (GeRA, eq. 3) for heads of any depth over features
// that are stored: a sample names the points of its neighbourhood by rows of a pool, in the
// columns batch.ImageNeighbours and batch.TextNeighbours. The points pass the head as in
// training, with dropout masks of their own, some anchors at a time.
type GeometricPool struct {
	Weight      float64    // for each side
	Image, Text batch.Pool // of the sides with the term; nil: a side without
	Neighbours  int        // K, points of a neighbourhood, the anchor among them
	Kernel      string     // heat, linear, squared or inverse
	Epsilon     float64    // width of the heat kernel
	Scale       string     // of distances: unit, relative or none
	Chunk       int        // rows that pass a head at a time; 0: automatic
}

// Dropout places of the points of both sides, apart from those of the towers and of the
// teacher's: no tower has that many.
const (
	imagePointSites = 2 << 16
	textPointSites  = 3 << 16
)

// Build implements Loss.
func (l GeometricPool) Build(s *Step) (parts []Part) {
	if l.Image != nil {
		parts = append(parts, s.Part("geometric_image", l.Weight, l.term(s, s.Online.Image, l.Image, batch.ImageNeighbours, imagePointSites)))
	}
	if l.Text != nil {
		parts = append(parts, s.Part("geometric_text", l.Weight, l.term(s, s.Online.Text, l.Text, batch.TextNeighbours, textPointSites)))
	}
	return parts
}

// term is the term of a side.
func (l GeometricPool) term(s *Step, x Side, pool batch.Pool, column string, sites uint64) *gorgonia.Node {
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
