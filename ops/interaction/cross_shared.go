package interaction

import (
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// What negative-aware attention, recurrent attention and the scores of words and patches have in common.

// take returns the operands: rows of images and texts, those of one side under the metric of each
// site, which may be nil, and the lengths. Blocks are those of cross attention.
func (x *cross) take(images, texts Tokens, attention, similarity *gorgonia.Node, under int) gorgonia.Nodes {
	in := op.Operands{images.Rows, texts.Rows}
	x.of = [6]int{0, 1, under, under}
	x.sites = [2][2]int{{0, 1}, {0, 1}}
	for site, rows := range []*gorgonia.Node{attention, similarity} {
		if at := in.Add(rows); at >= 0 {
			x.sites[site][under] = at
		}
	}
	x.rows = len(in)
	for k, q := range []Tokens{images, texts} {
		x.sides[k] = side{rows: k, lengths: in.Add(q.Lengths), weights: -1, places: -1, first: q.First, len: q.Len}
		x.most[k] = max(crossRows, q.Len)
		x.sequences[k] = x.most[k]
	}
	x.operands = len(in)
	return gorgonia.Nodes(in)
}

// Sites of products.
const (
	attentionSite = iota
	similaritySite
)

// cross describes what ops have of cross attention. The operands are the rows of images, of texts, of one of them under
// the metrics, and the lengths.
type cross struct {
	sides       [2]side   // images, texts
	query       int       // the side of the queries
	sites       [2][2]int // the operand that each site takes of each side
	of          [6]int    // the side of each operand of rows; those of vectors under metrics are 4 and 5
	rows        int       // operands that are rows
	operands    int
	scale, pool float32
	// Of each side in a block: the most tokens that take part, and the most sequences.
	most, sequences [2]int
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *cross) onCUDA() *oncuda.Cross {
	return &oncuda.Cross{
		Sides: sidesOnCUDA(x.sides), Query: x.query, Sites: x.sites, Of: x.of, Rows: x.rows, Scale: x.scale,
		Pool: x.pool,
	}
}

// shared says whether both sites have the same products.
func (x *cross) shared() bool { return x.sites[attentionSite] == x.sites[similaritySite] }

func (x *cross) shape(in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Shape{0, 0}
	for k, s := range x.sides {
		n, err := s.sequences(in, in[k])
		if err != nil {
			return nil, err
		}
		out[k] = n
	}
	for k := 2; k < x.rows; k++ {
		want := in[x.of[k]]
		if err := op.Need(in[k].Eq(want), "rows of %s under a metric must have shape %v (got %v)",
			[2]string{"images", "texts"}[x.of[k]], want, in[k]); err != nil {
			return nil, err
		}
	}
	return out, op.All(
		op.Need(in[0][1] == in[1][1], "images and texts must have as many channels (got %d and %d)", in[0][1],
			in[1][1]),
		op.Need(x.scale > 0, "the scale of the attention must be > 0 (got %g)", x.scale),
		op.Need(x.pool >= 0, "the scale of the pool must be >= 0 (got %g)", x.pool))
}

// flops counts the products of all tokens.
func (x *cross) flops(in []tensor.Shape) int64 {
	n := 2 * int64(in[0][0]) * int64(in[1][0]) * int64(in[0][1])
	if !x.shared() {
		n *= 2
	}
	return n
}
