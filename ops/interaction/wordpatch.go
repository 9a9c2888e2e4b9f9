package interaction

import (
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
)

// WordPatch says how words and patches look at each other.
type WordPatch struct {
	Scale       float32 // of the products that the attention is the softmax of; 1 in ViPMM
	Context     float32 // tau_1, temperature of the softmax of the attention
	Temperature float32 // tau of the cosines
	Sum         bool    // the cosines' exponentials are summed as printed, in the place of their means
}

// WordPatchScores returns the logarithms (N, M) of the alignment phi_loc of images x (N*T, C) with texts
// y (M*L, C) by their patches P_j and words S_i (ViPMM, equations 8 to 11). With products
// D_ij = S_i.P_j,
//
//	attn  = softmax_j(scale D_ij)           over the patches
//	attn' = softmax_i(scale D_ij)           over the words
//	S'_j  = sum_i softmax_i(attn_ij/tau_1) S_i    the text as patch j sees it
//	P'_i  = sum_j softmax_j(attn'_ij/tau_1) P_j   the image as word i sees it
//	phi   = mean_i exp(cos(S_i, P'_i)/tau) + mean_j exp(cos(P_j, S'_j)/tau)
//
// The printed scores pair P'^(j) with S' and S'^(i) with P', which have no such rows; each patch is
// compared with its own summary of the text here, and each word with its own of the image. The
// means stand for the printed sums, which grow with the length of a text; Sum has them. A token or a
// summary of length 0 has the cosine 0 and no gradient. A pair with a sequence without a token has
// the result 0.
//
// No S' and no P' is made: products with them are sums of D, and their lengths come from the products of
// the tokens of a side with each other. Pairs are worked on in blocks, and the backward pass makes them
// again, so that memory does not grow with the number of pairs. Products over channels are in the
// precision of the engine.
func WordPatchScores(images, texts Tokens, how WordPatch) *gorgonia.Node {
	const kind = "word patch scores"
	build(kind, op.Need(how.Scale > 0, "the scale of the attention must be > 0 (got %g)", how.Scale),
		op.Need(how.Context > 0, "the temperature of the summaries must be > 0 (got %g)", how.Context),
		op.Need(how.Temperature > 0, "the temperature of the cosines must be > 0 (got %g)", how.Temperature))
	p, at := attended(kind, images, texts, false, imageSide, nil, nil)
	return p.Scores(func(b *pairs.Block) pairs.Matrix {
		d := b.Products(at(b, attentionSite))
		// summed is log sum exp(cos/tau), or of the mean, over the tokens of a side, of their cosines with the summaries
		// of the other side by the softmax of attention.
		summed := func(side pairs.SideOf, attention pairs.Matrix) pairs.Matrix {
			other := 1 - side
			w := attention.Softmax(other, 1/how.Context)
			cos := w.Dot(d, other).CosineOrZero(b.SquaredLengths(w, b.Rows(other, 0)), b.SquaredNorms(b.Rows(side, 0)),
				crossEps)
			if how.Sum {
				return cos.LogSumExp(side, 1/how.Temperature)
			}
			return cos.LogMeanExp(side, 1/how.Temperature)
		}
		patches := summed(pairs.Contexts, d.Softmax(pairs.Contexts, how.Scale))
		words := summed(pairs.Queries, d.Softmax(pairs.Queries, how.Scale))
		scale := 1 / how.Temperature // log(e^(a x) + e^(a y)) = a x + log(1 + e^(a (y-x)))
		return words.Plus(scale, patches.Plus(1, words, -1).Softplus(scale), 1)
	})
}
