package interaction

import (
	"errors"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// recurrentEps is added to the length of a refined query.
const recurrentEps = 1e-8

// Recurrent says how queries look at the context again and again, with what they have seen.
type Recurrent struct {
	ImageQueries bool    // the tokens of images are the queries (image to text); else those of texts
	Scale        float32 // lambda
	Pool         float32 // l of the logarithm of the sum over the queries; 0: their mean
	Steps        int     // K, at least 2: one step is CrossAttention
	Unit         bool    // refined queries are brought to unit length
	// Weight (2C, 2C) and Bias (2C) are those of the memory unit: rows of the gate, then of the
	// update; columns of the query, then of the context.
	Weight, Bias *gorgonia.Node
	// Attention and Similarity are the rows of the context as the attention and the score compare
	// them with queries, under a metric each; nil: as they are.
	Attention, Similarity *gorgonia.Node
}

// RecurrentAttention returns the scores (N, M) of images x (N*T, C) and texts y (M*L, C) by
// recurrent attention memory (IMRAM, Chen et al. 2020): the sum over K steps of the scores of
// CrossAttention, where queries attend with what the steps before have made of them. With tokens q
// and the contexts c_q of step t,
//
//	x_q    = q in the first step
//	s_qk   = x_q.k, from which the contexts come as in CrossAttention
//	r_q    = q.c_q / max(|q| |c_q|, 1e-8)
//	g_q    = sigmoid(W_g [x_q; c_q] + b_g)
//	u_q    = tanh(W_u [x_q; c_q] + b_u)
//	x_q    = g_q x_q + (1 - g_q) u_q in the next step, with Unit x_q / (|x_q| + 1e-8)
//
// A step's score is log(sum_q exp(l r_q))/l or mean_q r_q. Attention is in the place of k in
// s_qk, Similarity in that of q.c_q. A sequence without a token has the score 0 with all.
//
// No c_q is made: W c_q is the sum of p_qk W k, where W k are made once for all tokens of the
// context. Refined queries are those of a pair; they are made for blocks of pairs, and again in the
// backward pass, so that memory does not grow with the number of pairs. Products over channels are in
// the precision of the engine.
func RecurrentAttention(images, texts Tokens, how Recurrent) *gorgonia.Node {
	const kind = "recurrent attention scores"
	if how.Weight == nil || how.Bias == nil {
		build(kind, errors.New("want the weight and the bias of the memory unit"))
	}
	context, rows := textSide, texts.Rows
	if !how.ImageQueries {
		context, rows = imageSide, images.Rows
	}
	p, at := attended(kind, images, texts, how.ImageQueries, context, how.Attention, how.Similarity)
	c := rows.Shape()[1]
	memory := []tensor.Shape{how.Weight.Shape(), how.Bias.Shape()}
	build(kind, op.Need(how.Scale > 0, "the scale of the attention must be > 0 (got %g)", how.Scale),
		op.Need(how.Pool >= 0, "the scale of the pool must be >= 0 (got %g)", how.Pool),
		op.Need(how.Steps >= 2, "the steps must be >= 2 (got %d)", how.Steps),
		op.WantShape(memory, 0, "the weight of the memory unit", 2*c, 2*c),
		op.WantShape(memory, 1, "the bias of the memory unit", 2*c))
	columns := func(from int) *gorgonia.Node { // those of the weight that read queries (0) or contexts
		return layout.StridedRows(layout.Reshape(how.Weight, 4*c, c), from, 2, 2*c)
	}
	values := len(p.Contexts.Rows)
	p.Contexts.Rows = append(p.Contexts.Rows, nn.Linear(rows, columns(1), nil)) // W k
	p.Shared, p.Vectors = gorgonia.Nodes{columns(0), how.Bias}, 2*c
	return p.Scores(func(b *pairs.Block) pairs.Matrix {
		q, k := at(b, attentionSite)
		s := b.Products(at(b, similaritySite))
		x := q
		var score pairs.Matrix
		for t := range how.Steps {
			weights := attention(b.Products(x, k), Cross{Scale: how.Scale})
			r := pool(cosine(b, weights, s), how.Pool)
			if t > 0 {
				r = score.Plus(1, r, 1)
			}
			if score = r; t+1 == how.Steps {
				break
			}
			gates := b.Linear(x, 0, 1)
			if t == 0 {
				x, gates = b.Repeat(x), b.Repeat(gates)
			}
			x = b.Gated(x, gates.Plus(b.Mix(weights, b.Rows(pairs.Contexts, values))))
			if how.Unit {
				x = b.Unit(x, recurrentEps)
			}
		}
		return score
	})
}
