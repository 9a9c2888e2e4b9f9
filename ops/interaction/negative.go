package interaction

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Negative says how words that have no counterpart in an image count against it.
type Negative struct {
	Scale float32 // lambda
	// Boundary holds values of which value At is t, the similarity below which a word is mismatched.
	Boundary *gorgonia.Node
	At       int
	// Smooth is the scale of the softmax by which words of a text share whether they are
	// mismatched; 0: each word for itself.
	Smooth float32
	// Attention and Similarity are the images' rows (N*T, C) as the attention and the score
	// compare them, under a metric each; nil: as they are.
	Attention, Similarity *gorgonia.Node
}

// NegativeAttention returns the scores (N, M) of images x (N*T, C) and texts y (M*L, C) by
// negative-aware attention (NAAF, Zhang et al. 2022, in the form of the published code). With words
// q, regions k, their products a_qk under Attention and s_qk under Similarity,
//
//	m_q = max_k s_qk - t
//	n_q = m_q where it is below 0, else 0
//	p_qk = softmax_k(lambda a_qk) over the k with a_qk > t, 0 for all others
//	c_q = sum_k p_qk k
//	f_q = sum_k p_qk s_qk / max(|q| |c_q|, 1e-8)
//	w_qk = softmax_k(lambda b_qk / (|b_.k| + 1e-8)),  b_qk = LeakyReLU(a_qk), slope 0.1
//	r_q = sum_k w_qk s_qk
//
// a pair has the score mean_q (n_q + f_q + r_q). With Smooth n_q is m_q where sum_l u_ql m_l is below
// 0, u = softmax_l(Smooth q.l) over the words l of the text. A sequence without a token has the
// score 0 with all.
//
// moments (N, M, 3) are how many words a pair has, and the sums of max_k s_qk and of its squares.
// Gradients go to the rows, not through the choice of the mismatched words and of the regions, nor
// to t. Pairs are worked on as CrossAttention does.
func NegativeAttention(images, texts Tokens, how Negative) (scores, moments *gorgonia.Node) {
	if how.Boundary == nil {
		panic(&op.BuildError{Op: "negative attention scores", Err: errors.New("want a boundary")})
	}
	x := &negative{cross: cross{scale: how.Scale, query: 1}, value: how.At, smooth: how.Smooth}
	in := x.take(images, texts, how.Attention, how.Similarity, 0)
	x.boundary = len(in)
	in = append(in, how.Boundary)
	scores = op.Apply(x.forward(), in...)
	shape := scores.Shape()
	return scores, op.Take(scores, 0, tensor.Shape{shape[0], shape[1], 3})
}

// negative describes the ops. The operands are those of cross attention, then the boundary.
type negative struct {
	cross
	boundary int // the operand
	value    int
	smooth   float32
}

// onCUDA is the op as its steps for the CUDA device know it.
func (x *negative) onCUDA() *oncuda.Negative {
	return &oncuda.Negative{Cross: *x.cross.onCUDA(), Boundary: x.boundary, Value: x.value, Smooth: x.smooth}
}

func (x *negative) args() string { return fmt.Sprintf("%+v", *x) }

func (x *negative) shape(in []tensor.Shape) (tensor.Shape, error) {
	out, err := x.cross.shape(in)
	if err != nil {
		return nil, err
	}
	b := in[x.boundary]
	return out, op.All(
		op.Need(len(b) == 1 && x.value >= 0 && x.value < b[0], "want value %d of the boundary (got shape %v)", x.value,
			b),
		op.Need(x.smooth >= 0, "the scale of the smoothing must be >= 0 (got %g)", x.smooth))
}

func (x *negative) op() scored {
	return scored{
		kind: "negative attention scores", gradients: "negative attention scores drows", args: x.args(),
		operands: x.boundary + 1, floats: first(x.rows), passes: 3,
		shape: x.shape, scratch: x.scratch, flops: x.flops, step: x.step, onCUDA: x.onCUDA().Step,
	}
}

// forward has the moments of the words as its auxiliary result.
func (x *negative) forward() *op.Op {
	o := x.op().forward()
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0] / x.sides[0].len, in[1][0] / x.sides[1].len, 3}}}
	}
	return o
}

func (x *negative) scratch(in []tensor.Shape, threads int, backward bool) int {
	return x.floats(in[0][1], threads, backward)
}
