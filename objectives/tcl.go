package objectives

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Local is the local mutual information of one modality in triple contrastive learning
// (Yang et al. 2022, section 3.3): within a batch, each part of a sample
// must be nearer to its own sample as a whole than the parts of other samples are,
//
//	s_i,jq = whole_i . part_jq / tau
//	L      = mean_i mean_p -log( exp(s_i,ip) / (exp(s_i,ip) + sum_{j /= i, q} exp(s_i,jq)) )
//
// where parts are momentum features and a gradient flows to the whole and to tau only. As
// in TCL's code the mean over the tokens of a text comes before the mean over texts,
// parts are unit vectors before they are averaged but not after it, and the score is the
// cosine whatever that of the contrast is, also in a Euclidean space: there is no queue of
// parts that a graph could span.
type Local struct {
	Whole       *gorgonia.Node // (B, C) unit rows
	Parts       *gorgonia.Node // (B*P, C) parts of sample i in rows [i*P, (i+1)*P)
	Lengths     *gorgonia.Node // (B) int32, or nil: parts from there on are padding
	First       int            // first part that counts: 1 leaves a class token out
	IDs         *gorgonia.Node // (B) int32, or nil: samples of one id are no negatives
	Temperature Temperature
}

// Build adds the loss to the step.
func (l Local) Build() *gorgonia.Node {
	s := l.Temperature.Divide(similarity.Similarity(l.Whole, op.Detach(l.Parts), nil, nil)) // (B, B*P)
	return contrast.LocalContrast(contrast.LocalArgs{Logits: s, Lengths: l.Lengths, IDs: l.IDs, First: l.First})
}

// Mean returns the mean of scalar losses, the rule by which the terms of triple
// contrastive learning make one loss.
func Mean(terms ...*gorgonia.Node) *gorgonia.Node {
	weights := make([]float32, len(terms))
	for i := range weights {
		weights[i] = 1 / float32(len(terms))
	}
	return arith.WeightedSum(weights, terms...)
}

// Intra returns the contrast within each modality (Yang et al. 2022, section
// 3.2): image against images and text against texts, with the momentum
// feature of the own sample, of another view of the image, as the positive. Targets have
// no share of the teacher's, and the score is that of the contrast across modalities.
func (c MomentumContrast) Intra() (i2i, t2t *gorgonia.Node) {
	term := func(f *gorgonia.Node, from Modality, b *Bank) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: c.Score.Logits(b, f, from, c.Positives), Cols: b.Cols,
			Labels: c.Positives.Labels, RowIDs: c.Positives.RowIDs, ColIDs: c.Positives.ColIDs,
		})
	}
	return term(c.Image, Image, c.ImageBank), term(c.Text, Text, c.TextBank)
}
