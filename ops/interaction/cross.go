package interaction

import (
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
)

const (
	crossSlope = 0.1  // of LeakyReLU
	crossEps   = 1e-8 // added to the norms over the queries, and the least product of two lengths
)

// Cross says how the tokens of one side, the queries, look at those of the other, the context.
type Cross struct {
	ImageQueries bool    // the tokens of images are the queries (image to text); else those of texts
	Scale        float32 // lambda
	Pool         float32 // l of the logarithm of the sum over the queries; 0: their mean
	Focal        bool    // context below the mean of a query's weights is left out (BFAN)
	Prob         bool    // with Focal: the mean is weighted by the square roots of the weights (BFAN-prob)
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
// equation 5 with equal weights), with Prob where they are not above sum p sqrt(p) / sum sqrt(p) (its equation with
// the square roots of the weights as confidences); a query whose weights are all equal keeps them.
// Attention is in the place of x in s_qk, Similarity in that of q.c_q; the norms are those of x
// and y. A sequence without a token has the score 0 with all.
//
// No c_q is made: q.c_q is the sum of p_qk q.k, and |c_q|^2 = p_q G p_q with the products G of
// the tokens of the context with each other. Products over channels are in the precision of the
// engine.
func CrossAttention(images, texts Tokens, how Cross) *gorgonia.Node {
	const kind = "cross attention scores"
	build(kind, op.Need(how.Scale > 0, "the scale of the attention must be > 0 (got %g)", how.Scale),
		op.Need(how.Pool >= 0, "the scale of the pool must be >= 0 (got %g)", how.Pool))
	p, at := attended(kind, images, texts, how.ImageQueries, imageSide, how.Attention, how.Similarity)
	return p.Scores(func(b *pairs.Block) pairs.Matrix {
		weights := attention(b.Products(at(b, attentionSite)), how)
		return pool(cosine(b, weights, b.Products(at(b, similaritySite))), how.Pool)
	})
}

// The sides of a pair.
const (
	imageSide = iota
	textSide
)

// Sites of products.
const (
	attentionSite = iota
	similaritySite
)

// attended returns the pairs of images and texts of which either are the queries, and what gives the tokens of a block
// whose products a site reads, with the rows of side `under` under the metric of it, where there is one.
func attended(kind string, images, texts Tokens, imageQueries bool, under int, attention,
	similarity *gorgonia.Node) (pairs.Pairs, func(b *pairs.Block, site int) (q, k pairs.Features)) {
	sides := [2]pairs.Side{images.side(), texts.side()}
	rows := sides[under].Rows[0].Shape()
	build(kind, op.Need(images.Rows.Shape()[1] == texts.Rows.Shape()[1],
		"images and texts must have as many channels (got %d and %d)", images.Rows.Shape()[1], texts.Rows.Shape()[1]))
	var at [2][2]int // the rows of each side that a site takes
	for site, metric := range []*gorgonia.Node{attention, similarity} {
		if metric != nil {
			build(kind, op.Need(metric.Shape().Eq(rows), "rows of %s under a metric must have shape %v (got %v)",
				[]string{"images", "texts"}[under], rows, metric.Shape()))
			at[site][under] = len(sides[under].Rows)
			sides[under].Rows = append(sides[under].Rows, metric)
		}
	}
	query := textSide
	if imageQueries {
		query = imageSide
	}
	p := pairs.Pairs{Kind: kind, Queries: sides[query], Contexts: sides[1-query], Transposed: !imageQueries}
	return p, func(b *pairs.Block, site int) (q, k pairs.Features) {
		return b.Rows(pairs.Queries, at[site][query]), b.Rows(pairs.Contexts, at[site][1-query])
	}
}

// side are the tokens as a side of pairs.
func (q Tokens) side() pairs.Side {
	return pairs.Side{Rows: gorgonia.Nodes{q.Rows}, Lengths: q.Lengths, Len: q.Len, First: q.First}
}

// build ends the construction of an op with the first error that there is.
func build(kind string, errs ...error) {
	if err := op.All(errs...); err != nil {
		panic(&op.BuildError{Op: kind, Err: err})
	}
}

// attention returns the weights p_qk of products s:
//
//	b_qk = LeakyReLU(s_qk),  p_qk = softmax_k(scale b_qk / (|b_.k| + eps)), focal or not
func attention(s pairs.Matrix, how Cross) pairs.Matrix {
	b := s.LeakyReLU(crossSlope).Normalise(how.Scale, crossEps)
	if how.Focal {
		return b.FocalSoftmax(1, how.Prob)
	}
	return b.Softmax(pairs.Contexts, 1)
}

// cosine returns q.c_q / max(|q| |c_q|, eps) of queries with their contexts under weights p_qk, where the products are
// q.k.
func cosine(b *pairs.Block, weights, products pairs.Matrix) pairs.Matrix {
	lengths, norms := b.SquaredLengths(weights, b.Rows(pairs.Contexts, 0)), b.SquaredNorms(b.Rows(pairs.Queries, 0))
	return weights.Dot(products, pairs.Contexts).Cosine(lengths, norms, crossEps)
}

// pool returns log(sum_q exp(l r_q))/l, with l 0 mean_q r_q.
func pool(r pairs.Matrix, l float32) pairs.Matrix {
	if l == 0 {
		return r.Mean(pairs.Queries)
	}
	return r.LogSumExp(pairs.Queries, l)
}
