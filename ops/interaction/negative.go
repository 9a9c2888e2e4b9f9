package interaction

import (
	"errors"

	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
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
	const kind = "negative attention scores"
	if how.Boundary == nil {
		build(kind, errors.New("want a boundary"))
	}
	bounds := how.Boundary.Shape()
	build(kind, op.Need(len(bounds) == 1 && how.At >= 0 && how.At < bounds[0],
		"want value %d of the boundary (got shape %v)", how.At, bounds),
		op.Need(how.Smooth >= 0, "the scale of the smoothing must be >= 0 (got %g)", how.Smooth),
		op.Need(how.Scale > 0, "the scale of the attention must be > 0 (got %g)", how.Scale))
	p, at := attended(kind, images, texts, false, imageSide, how.Attention, how.Similarity)
	p.Shared = gorgonia.Nodes{how.Boundary}
	return p.ScoresWith(func(b *pairs.Block) []pairs.Matrix {
		a, s, t := b.Products(at(b, attentionSite)), b.Products(at(b, similaritySite)), b.Value(0, how.At)
		top := s.Max(pairs.Contexts)
		above := top.Plus(1, t, -1)
		mismatch := above
		if how.Smooth > 0 {
			mismatch = above.Blend(b.Rows(pairs.Queries, 0), how.Smooth)
		}
		f := cosine(b, a.SoftmaxAbove(how.Scale, t), s)
		r := attention(a, Cross{Scale: how.Scale}).Dot(s, pairs.Contexts)
		score := above.Below(mismatch).Plus(1, f, 1).Plus(1, r, 1).Mean(pairs.Queries)
		return []pairs.Matrix{score, b.Count(pairs.Queries), top.Sum(pairs.Queries), top.Dot(top, pairs.Queries)}
	})
}
