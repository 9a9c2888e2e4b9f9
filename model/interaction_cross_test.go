package model

import (
	"reflect"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// TestCrossInteraction: kinds, directions and sites of the metric become those of the published
// codes.
func TestCrossInteraction(t *testing.T) {
	metric := encoders.Metric{Form: "dense", Blocks: 1, Dim: 16}
	for _, c := range []struct {
		set  interact.Options
		want encoders.Interaction
	}{
		{interact.Options{Kind: "scan", Metric: "similarity"}, interact.Cross{TextToImage: &interact.Attention{Scale: 9, Pool: 6}, Share: .5, Similarity: metric}},
		{interact.Options{Kind: "scan", Direction: "image_to_text", Metric: "attention"}, interact.Cross{ImageToText: &interact.Attention{Scale: 4, Pool: 5}, Share: .5, Attention: metric}},
		{interact.Options{Kind: "scan", Pool: "mean", Metric: "both"}, interact.Cross{TextToImage: &interact.Attention{Scale: 9}, Share: .5, Attention: metric, Similarity: metric}},
		{interact.Options{Kind: "scan", AttentionScale: 7, LSEScale: 20, Direction: "both", Metric: "similarity"},
			interact.Cross{ImageToText: &interact.Attention{Scale: 7, Pool: 20}, TextToImage: &interact.Attention{Scale: 7, Pool: 20}, Share: .5, Similarity: metric}},
		{interact.Options{Kind: "bfan", Metric: "similarity"},
			interact.Cross{ImageToText: &interact.Attention{Scale: 20}, TextToImage: &interact.Attention{Scale: 20}, Share: 1, Focal: true, Similarity: metric}},
		{interact.Options{Kind: "bfan", Direction: "text_to_image", Pool: "lse", Metric: "similarity"},
			interact.Cross{TextToImage: &interact.Attention{Scale: 20, Pool: 6}, Share: 1, Focal: true, Similarity: metric}},
		{interact.Options{Kind: "imram", Metric: "both", Steps: 3},
			interact.Recurrent{ImageToText: &interact.Attention{Scale: 9}, TextToImage: &interact.Attention{Scale: 9}, Share: 1, Steps: 3, Attention: metric, Similarity: metric}},
		{interact.Options{Kind: "imram", Direction: "text_to_image", AttentionScale: 11, Metric: "similarity", Steps: 2, UnitQueries: true},
			interact.Recurrent{TextToImage: &interact.Attention{Scale: 11}, Share: 1, Steps: 2, Unit: true, Similarity: metric}},
		{interact.Options{Kind: "naaf", Metric: "both", Penalty: 2}, interact.Negative{Scale: 20, Attention: metric, Similarity: metric}},
	} {
		cfg := tinyFILIP(c.set.Kind)
		cfg.Model.Interaction, cfg.Model.Head.Dim = c.set, 16
		cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", objectives.GSSF{Form: "dense"}
		check.OK(t, cfg.Validate())
		if got := cfg.Model.Interaction.Interaction(16, metricForm(cfg)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: got %+v, want %+v", c.set, got, c.want)
		}
	}
}

// TestCrossEvaluates: evaluation in blocks gives the scores that a step of training compares.
func TestCrossEvaluates(t *testing.T) {
	for _, kind := range []string{"scan", "bfan", "imram"} {
		cfg := tinyFILIP(kind)
		cfg.Model.Interaction.Steps = 3
		cfg.Objective.Hinge = objectives.Hinge{Weighted: section.Weigh(1), Margin: .2, Negatives: "hardest"}
		cfg.Objective.Poly, cfg.Objective.CMPM = objectives.Poly{Weighted: section.Weigh(1), Margin: .2}, objectives.CMPM{Weighted: section.Weigh(1), Scale: 2}
		m := buildInteraction(t, cfg)
		b := randomPairs(m, 7)
		for i := range b.Lengths {
			b.Lengths[i] = max(b.Lengths[i], 2)
		}
		r := forward(t, m, b, Control{})
		encode := func(e *Encoder) ([]float32, []int32) {
			x, n := check.Get2(e.EncodeTokens(t.Context(), m.feed(b, Control{}).Batch))(t)
			return append([]float32{}, x...), append([]int32{}, n...)
		}
		x, nx := encode(m.Image())
		y, ny := encode(m.Text())
		n := len(b.IDs)
		scores := make([][]float64, n)
		for i := range n { // an image at a time
			one := check.Get(m.Interaction().Scores(t.Context(), x[i*len(x)/n:(i+1)*len(x)/n], nx[i:i+1], y, ny))(t)
			for _, v := range one {
				scores[i] = append(scores[i], float64(v))
			}
		}
		comparePairLosses(t, kind, r, scores, lossIDs(b.IDs, "pair"), 0.3)
	}
}
