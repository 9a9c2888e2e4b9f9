package interact

import (
	"cmp"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/exchange"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Negative is the negative-aware attention of NAAF (Zhang et al. 2022, "Negative-Aware Attention
// Framework for Image-Text Matching"): words that match a region count for an image, by what they
// attend to, and words whose nearest region lies below a boundary against it. See
// interaction.NegativeAttention for the score.
//
// The boundary is that of BoundaryName. In training it is its first value, and samples of matched and
// of mismatched words go to the context, from which Samples.Boundary learns. In evaluation it is the
// second one, and words that are alike share whether they are mismatched.
type Negative struct {
	Scale float32 // lambda
	// Metrics of the sites: the products that attention reads, and those that are scores, maxima
	// included.
	Attention, Similarity encoders.Metric
}

// BoundaryName is the name of the boundary, (2): that of training and that of evaluation.
const BoundaryName = "interaction/boundary"

// alike is the scale of the softmax over the words of a text by which they share, as in the
// published code.
const alike = 5

var _ encoders.Interaction = Negative{}

func naaf(o Options, metric encoders.Metric) encoders.Interaction {
	x := Negative{Scale: float32(cmp.Or(o.AttentionScale, 20))}
	x.Attention, x.Similarity = o.sites(metric)
	return x
}

// Scores implements encoders.Interaction.
func (m Negative) Scores(c *encoders.Context, s encoders.Scope, images, texts encoders.Local) *gorgonia.Node {
	x, y := tokens(images), tokens(texts)
	how := interaction.Negative{Scale: m.Scale, Boundary: s.As(encoders.Traits{Frozen: true}).Param(BoundaryName,
		encoders.Zeros, 2)}
	if w := m.Attention.Weights(c, s, encoders.AttentionSite); w != nil {
		how.Attention = encoders.FoldImages(x.Rows, w)
	}
	if w := m.Similarity.Weights(c, s, encoders.SimilaritySite); w != nil {
		how.Similarity = encoders.FoldImages(x.Rows, w)
	}
	if c.Samples == nil {
		how.At, how.Smooth = 1, alike
	}
	scores, moments := interaction.NegativeAttention(x, y, how) // (N, M)
	if c.Samples != nil {
		all, of := scores, moments
		if texts.All && !images.All { // the images of the other ranks are those of the samples too
			all, of = exchange.Gather(c.Group, op.Detach(scores)), exchange.Gather(c.Group, op.Detach(moments))
		}
		c.Samples(interaction.MismatchSamples(all, of))
	}
	return scores
}
