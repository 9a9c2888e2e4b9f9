package interact

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/interaction"
	"gorgonia.org/gorgonia"
)

// MaxSim compares tokens with the nearest ones of the other side. With A_tl = x_t^T W y_l of the
// tokens t of an image and l of a text,
//
//	image to text  sum_t v_t max_l A_tl
//	text to image  sum_l w_l max_t A_tl
//
// and the score is one of these, or the mean of both. The weights v and w are Reduce.
type MaxSim struct {
	Reduce      Reduce
	ImageToText bool // the sum over an image's tokens
	TextToImage bool // the sum over a text's tokens
	Hidden      int  // H, width of the hidden layer of Soft
	// Metric is W of each pair of tokens, applied once to the images' tokens.
	Metric encoders.Metric
}

// Reduce says how the maxima of the tokens of one side become one number.
type Reduce int

// The reductions.
const (
	// Mean is the mean: FILIP (Yao et al. 2021, equations 4 and 5).
	Mean Reduce = iota
	// Sum is the sum: MrSw of TERAN (Messina et al. 2021, equation 5) over the words.
	Sum
	// Soft weighs tokens by softmax(MLP(token)): WTI (Wang et al. 2022, "Disentangled
	// Representation Learning for Text-Video Retrieval", equation 6). The MLP, a hidden layer with
	// ReLU, reads tokens before their norm.
	Soft
)

var _ encoders.Interaction = MaxSim{}

// maxSim returns the kind with a reduction.
func maxSim(reduce Reduce) func(Options, encoders.Metric) encoders.Interaction {
	return func(o Options, metric encoders.Metric) encoders.Interaction {
		return MaxSim{
			Reduce: reduce, ImageToText: o.Direction != DirectionTextToImage,
			TextToImage: o.Direction != DirectionImageToText, Hidden: o.Hidden, Metric: metric,
		}
	}
}

// Scores implements encoders.Interaction.
func (m MaxSim) Scores(c *encoders.Context, s encoders.Scope, images, texts encoders.Local) *gorgonia.Node {
	x, y := tokens(images), tokens(texts)
	x.Rows = encoders.FoldImages(x.Rows, m.Metric.Weights(c, s, encoders.SimilaritySite))
	scope := s.In("interaction")
	if m.ImageToText {
		x.Weights = m.weights(c, scope.In("image"), x, images.Raw)
	}
	if m.TextToImage {
		y.Weights = m.weights(c, scope.In("text"), y, texts.Raw)
	}
	score := interaction.MaxSim(x, y) // (N, M)
	if m.ImageToText && m.TextToImage {
		return arith.Combine([]float32{0.5}, score)
	}
	return score
}

// tokens are local features as the ops of interactions take them.
func tokens(x encoders.Local) interaction.Tokens {
	return interaction.Tokens{Rows: x.Rows, Lengths: x.Lengths, Len: x.Len, First: x.First}
}
