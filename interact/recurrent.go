package interact

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/interaction"
	"gorgonia.org/gorgonia"
)

// Recurrent is cross attention in steps, in which each token looks again with what it has seen:
// IMRAM (Chen et al. 2020, "Iterative Matching with Recurrent Attention Memory"). The scores of
// the steps are added up. See interaction.RecurrentAttention for the score.
//
// Each direction has a memory unit of its own for all its steps, interaction/DIRECTION/memory.
type Recurrent struct {
	// Directions, nil where one is not there. With both, the score is Share times their sum.
	ImageToText, TextToImage *Attention
	Share                    float32
	Steps                    int  // at least 1; 1 is Cross, without a memory unit
	Unit                     bool // refined tokens are brought to unit length
	// Metrics of the sites, as those of Cross. In every step the same weights.
	Attention, Similarity encoders.Metric
}

var _ encoders.Interaction = Recurrent{}

func imram(o Options, metric encoders.Metric) encoders.Interaction {
	x := Recurrent{Share: 1, Steps: o.Steps, Unit: o.UnitQueries,
		ImageToText: o.attention(DirectionImageToText, 9, PoolMean),
		TextToImage: o.attention(DirectionTextToImage, 9, PoolMean)}
	x.Attention, x.Similarity = o.sites(metric)
	return x
}

// Scores implements encoders.Interaction.
func (m Recurrent) Scores(c *encoders.Context, s encoders.Scope, images, texts encoders.Local) *gorgonia.Node {
	if m.Steps == 1 {
		once := Cross{ImageToText: m.ImageToText, TextToImage: m.TextToImage, Share: m.Share, Attention: m.Attention,
			Similarity: m.Similarity}
		return once.Scores(c, s, images, texts)
	}
	x, y := tokens(images), tokens(texts)
	attention, similarity := m.Attention.Weights(c, s, encoders.AttentionSite),
		m.Similarity.Weights(c, s, encoders.SimilaritySite)
	return directions(m.ImageToText, m.TextToImage, m.Share, func(imageQueries bool, a *Attention) *gorgonia.Node {
		how := interaction.Recurrent{ImageQueries: imageQueries, Scale: a.Scale, Pool: a.Pool, Steps: m.Steps,
			Unit: m.Unit}
		fold, context, name := encoders.FoldImages, x.Rows, "text_to_image"
		if imageQueries {
			fold, context, name = encoders.FoldTexts, y.Rows, "image_to_text"
		}
		if attention != nil {
			how.Attention = fold(context, attention)
		}
		if similarity != nil {
			how.Similarity = fold(context, similarity)
		}
		width := 2 * context.Shape()[1]
		memory, start := s.In("interaction").In(name).In("memory"), encoders.LinearDefault(width)
		how.Weight = memory.Param("weight", start, width, width)
		how.Bias = memory.As(encoders.Traits{Group: encoders.GroupBias}).Param("bias", start, width)
		return interaction.RecurrentAttention(x, y, how) // (N, M)
	})
}
