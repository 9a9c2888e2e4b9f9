package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// ITM is image-text matching (Matching) with hard negatives as a loss over fused pairs: B
// pairs, B texts with a wrong image, B images with a wrong text. It reads the first token
// of each.
type ITM struct {
	Weight float64
	Floor  float64 // added to the probability of every negative before the draw

	labels *gorgonia.Node // (3B) int32
}

var _ Fused = (*ITM)(nil)

// Prepare implements Fused.
func (l *ITM) Prepare(s *Step) {
	s.Reads.Online.Image.Tokens, s.Reads.Online.Text.Tokens = true, true
}

// Pairs implements Fused.
func (l *ITM) Pairs(s *Step, first int) FusedPairs {
	b := s.Rows
	texts, images := l.negatives(s)    // (B), (B)
	batch := s.Count("batch", 0, b, 1) // (B)
	return FusedPairs{
		Count: 3 * b, Texts: gorgonia.Nodes{batch, batch, texts}, Images: gorgonia.Nodes{batch, images, batch},
		Places: s.Fusion.firstTokens(s, first, 3*b),
	}
}

// negatives returns what each image and each text is paired with, (B) int32 each:
// relabelled where there is a judge, else sampled.
func (l *ITM) negatives(s *Step) (texts, images *gorgonia.Node) {
	c, b := s.Similarities(), s.Rows
	match := s.FixedInts("match", slices.Repeat([]int32{1}, b))
	if s.Judge != nil {
		r := s.relabel(c.I2T, c.T2I)
		l.labels = r.Labels(match)
		return r.Texts.Index, r.Images.Index
	}
	forI2T, forT2I := make([]float32, b*b), make([]float32, b*b)
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Negatives, uint64(f.Counter))
		fillNoise(forI2T, b, r, f, gumbel)
		fillNoise(forT2I, b, r, f, gumbel)
		return nil
	})
	texts, images = HardNegatives(c, s.SharedFloats("noise i2t", forI2T, b, b), s.SharedFloats("noise t2i", forT2I, b, b), s.IDs, l.Floor)
	l.labels = MatchingLabels(match, images, texts)
	return texts, images
}

// Loss implements Fused.
func (l *ITM) Loss(s *Step, states *gorgonia.Node) []Part {
	logits := MatchLogits(s.Params, states) // (3B, 2)
	return []Part{
		s.Part("itm", l.Weight, Matching(logits, l.labels)),
		{Name: "itm_accuracy", Node: contrast.Accuracy(logits, l.labels), Measure: true},
	}
}
