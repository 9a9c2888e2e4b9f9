package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Cross says how the tokens of one side, the queries, look at those of the other, the context.
type Cross struct {
	ImageQueries bool    // the tokens of images are the queries (image to text); else those of texts
	Scale        float32 // lambda
	Pool         float32 // l of the logarithm of the sum over the queries; 0: their mean
	Focal        bool    // context below the mean of a query's weights is left out (BFAN)
	// Attention and Similarity are the images' rows (N*T, C) as the attention and the final score
	// compare them, under a metric each; nil: as they are.
	Attention, Similarity *gorgonia.Node
}

// CrossAttention returns the scores (N, M) of images x (N*T, C) and texts y (M*L, C) by stacked
// cross attention (SCAN, Lee et al. 2018, equations 1 to 9, with the slope and the norms of the
// published code). With tokens q of the queries and k of the context, their products
// s_qk and
//
//	b_qk = LeakyReLU(s_qk),  slope 0.1
//	p_qk = softmax_k(lambda b_qk / (|b_.k| + 1e-8))
//	c_q  = sum_k p_qk k
//	r_q  = q.c_q / max(|q| |c_q|, 1e-8)
//
// a pair has the score log(sum_q exp(l r_q))/l or mean_q r_q. With Focal p_qk are 0 where they
// are not above their mean over k, and the others are scaled to the sum 1 (BFAN, Liu et al. 2019,
// equation 5 with equal weights); a query whose weights are all equal keeps them.
// Attention is in the place of x in s_qk, Similarity in that of q.c_q; the norms are those of x
// and y. A sequence without a token has the score 0 with all.
//
// No c_q is made: q.c_q is the sum of p_qk q.k, and |c_q|^2 = p_q G p_q with the products G of
// the tokens of the context with each other. Pairs are worked on in blocks, and the backward pass
// makes them again, so that memory does not grow with the number of pairs. Products over channels
// are in the precision of the engine.
func CrossAttention(images, texts Tokens, how Cross) *gorgonia.Node {
	x := &cross{scale: how.Scale, pool: how.Pool, focal: how.Focal, query: 1}
	if how.ImageQueries {
		x.query = 0
	}
	in := x.take(images, texts, how.Attention, how.Similarity, 0)
	return op.Apply(x.op().forward(), in...)
}

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

// cross describes the ops. The operands are the rows of images, of texts, of one of them under the
// metrics, and the lengths.
type cross struct {
	sides       [2]side   // images, texts
	query       int       // the side of the queries
	sites       [2][2]int // the operand that each site takes of each side
	of          [6]int    // the side of each operand of rows; those of vectors under metrics are 4 and 5
	rows        int       // operands that are rows
	operands    int
	scale, pool float32
	focal       bool
	// Of each side in a block: the most tokens that take part, and the most sequences.
	most, sequences [2]int
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *cross) onCUDA() *oncuda.Cross {
	return &oncuda.Cross{
		Sides: sidesOnCUDA(x.sides), Query: x.query, Sites: x.sites, Of: x.of, Rows: x.rows, Scale: x.scale,
		Pool: x.pool, Focal: x.focal,
	}
}

func (x *cross) args() string { return fmt.Sprintf("%+v", *x) }

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

func (x *cross) op() scored {
	return scored{
		kind: "cross attention scores", gradients: "cross attention scores drows", args: x.args(),
		operands: x.operands, floats: first(x.rows), passes: 3,
		shape: x.shape, scratch: x.scratch, flops: x.flops, step: x.step, onCUDA: x.onCUDA().Step,
	}
}

func (x *cross) scratch(in []tensor.Shape, threads int, backward bool) int {
	return x.floats(in[0][1], threads, backward)
}

// flops counts the products of all tokens.
func (x *cross) flops(in []tensor.Shape) int64 {
	n := 2 * int64(in[0][0]) * int64(in[1][0]) * int64(in[0][1])
	if !x.shared() {
		n *= 2
	}
	return n
}
