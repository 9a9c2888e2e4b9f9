package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
)

// TokenImage is the hinge loss of the tokens of a text with its image against another one of the batch (ViPMM,
// equations 13 to
// 15, after Vokenization): the mean over the tokens of all texts.
//
// With the relevance r_i(Y) = J_s,i . J_y of token i for the
// image Y, both as the heads map them, of length 1,
//
//	L = mean_i max(0, M - r_i(Y) + r_i(Y'))
//
// over the tokens of all texts of the batch, without what stands around a text: the printed loss is that of a
// scalar where r is a vector. A pair without another image has no part in it; without any the loss is 0.
type TokenImage struct {
	// of the loss in the total, 1 in ViPMM; 0: off
	section.Weighted
	ofTokens
	// by which a token shall be nearer to its image, 0.5 in Vokenization
	Margin float64 `toml:"margin"`
	// random (each image is the wrong one of one other pair, anew at each step) | half (that of the pair half a batch
	// away, as in Vokenization)
	Negatives string `toml:"negatives"`
}

var _ Preparer = (*TokenImage)(nil)

// Defaults implements section.Defaulter.
func (l *TokenImage) Defaults() { *l = TokenImage{Margin: 0.5, Negatives: "random"} }

// Check implements section.Checked.
func (l *TokenImage) Check(k *section.Checker) {
	checkTokens(k, l)
	k.Require("margin", l.Margin > 0 && l.Margin <= 1e4, "must be above 0 and at most 10000",
		"0.5 is what cosines are trained with")
	k.OneOf("negatives", "random", "half")
}

// Build implements Loss.
func (l *TokenImage) Build(s *Step) []Part {
	s = s.Whole()
	// (B*L, C), (B, C)
	text, images := s.tokensOf("token_image", s.Online.Text), s.unit(s.Online.Image.Features)
	index, has := s.partners("token_image negatives", Partners{Half: l.Negatives == "half", Prob: 1}) // (B)
	own := similarity.RowProducts(text.Rows, images)                                                  // (B*L)
	other := similarity.RowProducts(text.Rows, nn.GatherRows(images, index, 1))
	part := s.Part("token_image", l.Weight, contrast.Margin(own, other, text.Spread(has), l.Margin))
	part.Chance = l.Margin
	return []Part{part}
}
