package interact

import (
	"errors"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Cross compares every token of one side with its context, the tokens of the other side as it
// attends to them: SCAN (Lee et al. 2018, "Stacked Cross Attention for Image-Text Matching") and
// BFAN (Liu et al. 2019, "Focus Your Attention"). See interaction.CrossAttention for the score.
type Cross struct {
	// Directions, nil where one is not there. With both, the score is Share times their sum.
	ImageToText *Attention // tokens of images attend to those of texts
	TextToImage *Attention // tokens of texts attend to those of images
	Share       float32
	Focal       bool // context below the mean of a token's weights is left out: BFAN
	Prob        bool // with Focal: the mean is weighted by the square roots of the weights
	// Metrics of the sites: the products that attention reads, and x^T W y of a token and its
	// context, each of length 1 before W. Both directions have the same weights.
	Attention, Similarity encoders.Metric
}

// Attention is that of one direction.
type Attention struct {
	Scale float32 // lambda
	Pool  float32 // l of the logarithm of the sum of exponentials; 0: the mean
}

var _ encoders.Interaction = Cross{}

func scan(o Options, metric encoders.Metric) encoders.Interaction {
	x := Cross{Share: 0.5, ImageToText: o.attention(DirectionImageToText, 4, PoolLSE),
		TextToImage: o.attention(DirectionTextToImage, 9, PoolLSE)}
	x.Attention, x.Similarity = o.sites(metric)
	return x
}

func bfan(o Options, metric encoders.Metric) encoders.Interaction {
	x := Cross{Share: 1, Focal: true, Prob: o.Focus == FocusProb,
		ImageToText: o.attention(DirectionImageToText, 20, PoolMean),
		TextToImage: o.attention(DirectionTextToImage, 20, PoolMean)}
	x.Attention, x.Similarity = o.sites(metric)
	return x
}

// Scores implements encoders.Interaction.
func (m Cross) Scores(c *encoders.Context, s encoders.Scope, images, texts encoders.Local) *gorgonia.Node {
	x, y := tokens(images), tokens(texts)
	how := interaction.Cross{
		Focal:      m.Focal,
		Prob:       m.Prob,
		Attention:  fold(x.Rows, m.Attention.Weights(c, s, encoders.AttentionSite)),
		Similarity: fold(x.Rows, m.Similarity.Weights(c, s, encoders.SimilaritySite)),
	}
	return directions(m.ImageToText, m.TextToImage, m.Share, func(imageQueries bool, a *Attention) *gorgonia.Node {
		how := how
		how.ImageQueries, how.Scale, how.Pool = imageQueries, a.Scale, a.Pool
		return interaction.CrossAttention(x, y, how) // (N, M)
	})
}

// directions returns the scores of the direction that is there, or share times the sum of both.
func directions(imageToText, textToImage *Attention, share float32,
	way func(imageQueries bool, a *Attention) *gorgonia.Node) *gorgonia.Node {
	switch {
	case imageToText == nil && textToImage == nil:
		panic(&op.BuildError{Op: "interaction",
			Err: errors.New("there is no direction: set ImageToText, TextToImage or both")})
	case textToImage == nil:
		return way(true, imageToText)
	case imageToText == nil:
		return way(false, textToImage)
	}
	return arith.Combine([]float32{share, share}, way(true, imageToText), way(false, textToImage))
}
