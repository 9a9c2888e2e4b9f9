package interact

import (
	"cmp"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/interaction"
	"gorgonia.org/gorgonia"
)

// Vectors compares each word with its context, the tokens of an image as the word attends to them,
// and the whole text with the whole image, by vectors of Dim channels, and makes one score of those
// of a pair: SGRAF (Diao et al. 2021, "Similarity Reasoning and Filtration for Image-Text Matching").
// See interaction.SimilarityVectors for the score and encoders.SelfPool for wholes.
//
// Parameters below interaction/ are image and text of the pools, local, global, score, and graph/00
// and so on of the steps, or gate.
type Vectors struct {
	Dim     int     // S
	Scale   float32 // lambda of the attention
	Steps   int     // of reasoning over the graph of the vectors; 0: gates of the vectors
	Dropout float64 // in the pools
	// Metrics of the sites: the products that attention reads, and what contexts and whole images are
	// multiplied by before they are compared.
	Attention, Similarity encoders.Metric
}

var _ encoders.Interaction = Vectors{}

func sgr(o Options, metric encoders.Metric) encoders.Interaction {
	x := Vectors{Dim: o.SimDim, Steps: o.Steps, Dropout: o.Dropout, Scale: float32(cmp.Or(o.AttentionScale, 9))}
	x.Attention, x.Similarity = o.sites(metric)
	return x
}

func saf(o Options, metric encoders.Metric) encoders.Interaction {
	o.Steps = 0
	return sgr(o, metric)
}

// Scores implements encoders.Interaction.
func (v Vectors) Scores(c *encoders.Context, s encoders.Scope, images, texts encoders.Local) *gorgonia.Node {
	x, y, scope := tokens(images), tokens(texts), s.In("interaction")
	pool := encoders.SelfPool{Dropout: v.Dropout}
	similarity := v.Similarity.Weights(c, s, encoders.SimilaritySite)
	how := interaction.Vectors{
		Scale:      v.Scale,
		Attention:  fold(x.Rows, v.Attention.Weights(c, s, encoders.AttentionSite)),
		Similarity: fold(x.Rows, similarity),
		Images:     encoders.FoldImages(pool.Forward(c, scope.In("image"), images), similarity), // (N, C)
		Texts:      pool.Forward(c, scope.In("text"), texts),                                    // (M, C)
	}
	layer := func(s encoders.Scope, name string, in, out int) (l interaction.Layer) {
		l.Weight, l.Bias = encoders.XavierLayer(s, name, in, out)
		return l
	}
	channels := x.Rows.Shape()[1]
	how.Local, how.Global, how.Score = layer(scope, "local", channels, v.Dim), layer(scope, "global", channels, v.Dim),
		layer(scope, "score", v.Dim, 1)
	for i := range v.Steps {
		s := scope.Layer("graph", i)
		how.Steps = append(how.Steps, interaction.Reasoning{
			Query: layer(s, "query", v.Dim, v.Dim), Out: layer(s, "out", v.Dim, v.Dim),
			Key: interaction.Layer{Weight: encoders.XavierWeight(s, "key", v.Dim, v.Dim)}, // whose bias a softmax does not see
		})
	}
	if v.Steps == 0 {
		how.Gate = layer(scope, "gate", v.Dim, 1)
	}
	return interaction.SimilarityVectors(x, y, how) // (N, M)
}

// fold returns rows of images under a metric, nil without one.
func fold(rows, w *gorgonia.Node) *gorgonia.Node {
	if w == nil {
		return nil
	}
	return encoders.FoldImages(rows, w)
}
