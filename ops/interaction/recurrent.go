package interaction

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

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
// No c_q is made: W c_q is the sum of p_qk W k. Refined queries are those of a pair; they are made
// for blocks of pairs, and again in the backward pass, so that memory does not grow with the
// number of pairs. Products over channels are in the precision of the engine.
func RecurrentAttention(images, texts Tokens, how Recurrent) *gorgonia.Node {
	if how.Weight == nil || how.Bias == nil {
		panic(&op.BuildError{Op: "recurrent attention scores",
			Err: errors.New("want the weight and the bias of the memory unit")})
	}
	x := &recurrent{cross: cross{scale: how.Scale, pool: how.Pool, query: 1}, steps: how.Steps, unit: how.Unit}
	if how.ImageQueries {
		x.query = 0
	}
	in := x.take(images, texts, how.Attention, how.Similarity, 1-x.query)
	x.limit()
	x.weight = len(in)
	in = append(in, how.Weight, how.Bias)
	return op.Apply(x.op().forward(), in...)
}

// Most rows of a block: tokens of the queries, as long as sequences fit, and times sequences of the context.
const (
	recurrentQueries = 64
	recurrentPairs   = 1024
)

// recurrent describes the ops. The operands are those of cross attention, then the weight and the
// bias.
type recurrent struct {
	cross
	steps  int
	unit   bool
	weight int // the operand, before the bias
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *recurrent) onCUDA() *oncuda.Recurrent {
	return &oncuda.Recurrent{Cross: *x.cross.onCUDA(), Steps: x.steps, Unit: x.unit, Weight: x.weight}
}

// limit makes the blocks smaller than those of cross attention.
func (x *recurrent) limit() {
	q, k := x.query, 1-x.query
	x.most[q] = max(recurrentQueries, x.sides[q].len)
	x.sequences[q] = x.most[q]
	x.sequences[k] = max(1, recurrentPairs/x.most[q])
	x.most[k] = min(x.most[k], x.sequences[k]*x.sides[k].len)
}

func (x *recurrent) args() string { return fmt.Sprintf("%+v", *x) }

func (x *recurrent) shape(in []tensor.Shape) (tensor.Shape, error) {
	out, err := x.cross.shape(in)
	if err != nil {
		return nil, err
	}
	c := in[0][1]
	return out, op.All(
		op.Need(x.steps >= 2, "the steps must be >= 2 (got %d)", x.steps),
		op.WantShape(in, x.weight, "the weight of the memory unit", 2*c, 2*c),
		op.WantShape(in, x.weight+1, "the bias of the memory unit", 2*c))
}

func (x *recurrent) op() scored {
	return scored{
		kind: "recurrent attention scores", gradients: "recurrent attention scores drows", args: x.args(),
		operands: x.weight + 2,
		floats:   append(first(x.rows), x.weight, x.weight+1), passes: 4,
		shape: x.shape, scratch: x.scratch, flops: x.flops, step: x.step, onCUDA: x.onCUDA().Step,
	}
}

func (x *recurrent) scratch(in []tensor.Shape, threads int, backward bool) int {
	return x.floats(in[0][1], threads, backward)
}

// flops counts the products of all tokens in each step, and those of refined queries with the
// weight.
func (x *recurrent) flops(in []tensor.Shape) int64 {
	queries, contexts, c := int64(in[x.query][0]), int64(in[1-x.query][0]), int64(in[0][1])
	pairs := queries * (contexts / int64(x.sides[1-x.query].len))
	return x.cross.flops(in) + int64(x.steps-1)*6*queries*contexts*c + int64(x.steps-2)*4*pairs*c*c
}
