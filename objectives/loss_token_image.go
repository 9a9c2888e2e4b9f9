package objectives

import (
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
)

// TokenImage is the hinge loss of the tokens of a text with its image against another one of the batch (ViPMM,
// equations 13 to 15, after Vokenization, Tan and Bansal 2020). With the relevance r_i(Y) = J_s,i . J_y of token i for the
// image Y, both as the heads map them, of length 1,
//
//	L = mean_i max(0, M - r_i(Y) + r_i(Y'))
//
// over the tokens of all texts of the batch, without what stands around a text: the printed loss is that of a
// scalar where r is a vector. A pair without another image has no part in it; without any the loss is 0.
type TokenImage struct {
	Weight float64
	Margin float64 // M
	Half   bool    // Y' is the image half a batch away, as in Vokenization, else one in a random order
}

var _ Preparer = TokenImage{}

// Prepare implements Preparer.
func (l TokenImage) Prepare(s *Step) { s.ReadLocal() }

// Build implements Loss.
func (l TokenImage) Build(s *Step) []Part {
	s = s.Whole()
	text, images := s.tokensOf("token_image", s.Online.Text), s.unit(s.Online.Image.Features) // (B*L, C), (B, C)
	index, has := s.partners("token_image negatives", Partners{Half: l.Half, Prob: 1})        // (B)
	own := similarity.RowProducts(text.Rows, images)                                          // (B*L)
	other := similarity.RowProducts(text.Rows, nn.GatherRows(images, index, 1))
	part := s.Part("token_image", l.Weight, contrast.Margin(own, other, text.Spread(has), l.Margin))
	part.Chance = l.Margin
	return []Part{part}
}
