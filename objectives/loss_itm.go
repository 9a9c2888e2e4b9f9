package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// ITM is image-text matching with hard negatives.
//
// It is Matching as a loss over fused pairs: B
// pairs, B texts with a wrong image, B images with a wrong text. It reads the first token
// of each.
type ITM struct {
	section.Weighted
	// drawn by: score (of the contrast), or one of the kinds of objective.itc.score; geodesic is that of the teacher
	Negatives string `toml:"negatives"`
	// added to the softmax that negatives are drawn by, so that some are drawn whatever their score; 0: the softmax
	// alone, as in ALBEF
	NegativeFloor float64 `toml:"negative_floor" max:"1"`

	labels *gorgonia.Node // (3B) int32
}

var _ Fused = (*ITM)(nil)

// Defaults implements section.Defaulter.
func (l *ITM) Defaults() { *l = ITM{Weighted: section.Weigh(1), Negatives: "score"} }

// Needs implements section.Needer.
func (*ITM) Needs() []section.Fact { return []section.Fact{section.Fusion} }

// Gives implements section.Giver.
func (l *ITM) Gives() []section.Fact {
	list := []section.Fact{section.FusedPairs, section.Temperature, section.States}
	if l.Negatives == "score" {
		list = append(list, section.Score)
	}
	return list
}

// Check implements section.Checked.
func (l *ITM) Check(k *section.Checker) {
	k.NotNegative("negative_floor")
	k.OneOf("negatives", append([]string{"score"}, ScoreKinds...)...)
}

// Prepare implements Fused.
func (l *ITM) Prepare(s *Step) {
	s.Reads.Online.Image.Tokens, s.Reads.Online.Text.Tokens = true, true
}

// Pairs implements Fused.
func (l *ITM) Pairs(s *Step, first int) FusedPairs {
	b := s.Rows
	texts, images := l.negatives(s)    // (B), (B)
	batch := s.Count("batch", 0, b, 1) // (B)
	p := FusedPairs{Count: 3 * b, Places: s.FirstTokens(first, 3*b), WholePlaces: 3 * b * s.Ranks.Size()}
	if s.globalNegatives() {
		p.OtherTexts, p.OtherImages = texts, images
		own := b
		if s.Reads.Online.Text.Masked { // masked captions stand behind the clean ones
			own = 2 * b
		}
		texts, images = s.Count("texts of other ranks", own, b, 1), s.Count("images of other ranks", b, b, 1)
	}
	p.Texts, p.Images = gorgonia.Nodes{batch, batch, texts}, gorgonia.Nodes{batch, images, batch}
	return p
}

// negatives returns what each image and each text is paired with, (B) int32 each, rows of the batch or, with those of
// all ranks, of the global batch: relabelled where there is a judge, else sampled.
func (l *ITM) negatives(s *Step) (texts, images *gorgonia.Node) {
	c, b := s.Similarities(), s.Rows
	match := s.FixedInts("match", slices.Repeat([]int32{1}, b))
	if s.Judge != nil {
		r := s.relabel(c.I2T, c.T2I)
		l.labels = r.Labels(match)
		return r.Texts.Index, r.Images.Index
	}
	n := b
	if s.globalNegatives() {
		n = s.All()
	}
	forI2T, forT2I := make([]float32, b*n), make([]float32, b*n)
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Negatives, uint64(f.Counter))
		s.FillGumbel(forI2T, r, f)
		s.FillGumbel(forT2I, r, f)
		return nil
	})
	noiseI2T, noiseT2I := s.SharedFloats("noise i2t", forI2T, b, n), s.SharedFloats("noise t2i", forT2I, b, n)
	if s.globalNegatives() {
		own, ids := s.Own(), s.Gather(s.IDs)
		texts, images = contrast.SampleNegativesOf(c.I2T, noiseI2T, ids, own, l.NegativeFloor),
			contrast.SampleNegativesOf(c.T2I, noiseT2I, ids, own, l.NegativeFloor)
		l.labels = layout.ConcatInts(match, contrast.NegativeLabelsOf(images, own),
			contrast.NegativeLabelsOf(texts, own))
		return texts, images
	}
	texts, images = HardNegatives(Contrast{I2T: s.ownColumns(c.I2T), T2I: s.ownColumns(c.T2I)}, noiseI2T, noiseT2I,
		s.IDs, l.NegativeFloor)
	l.labels = MatchingLabels(match, images, texts)
	return texts, images
}

// Loss implements Fused.
func (l *ITM) Loss(s *Step, states *gorgonia.Node) []Part {
	logits := MatchLogits(s.Params, states) // (3B, 2)
	return []Part{
		s.Part("itm", l.Weight, s.mean(Matching(logits, l.labels), l.labels)),
		{Name: "itm_accuracy", Node: s.mean(contrast.Accuracy(logits, l.labels), l.labels), Measure: true},
	}
}

// HardNegatives draws for every image a text, and for every text an image, that is
// no positive but scores high in the contrast (Li et al. 2021, section 3.2). Both
// results are (B) int32 indices into the batch; an index equal to its own row says
// that the batch has no negative for it.
//
// noiseI2T and noiseT2I are (B, B) standard Gumbel noise; ids (B) int32 are the
// image ids, or nil if only the own pair is a positive; floor is added to each probability,
// 0 is the reference's law.
func HardNegatives(c Contrast, noiseI2T, noiseT2I, ids *gorgonia.Node, floor float64) (texts, images *gorgonia.Node) {
	return contrast.SampleNegatives(c.I2T, noiseI2T, ids, false, floor),
		contrast.SampleNegatives(c.T2I, noiseT2I, ids, false, floor)
}

// MatchingLabels returns the labels (3B) of image-text matching for the rows
// (T_i, I_i), (T_i, negative image), (negative text, I_i): 1, 0, 0, and ignored
// where there was no negative. ones is (B) int32 of value 1.
func MatchingLabels(ones, negImages, negTexts *gorgonia.Node) *gorgonia.Node {
	return layout.ConcatInts(ones, contrast.NegativeLabels(negImages), contrast.NegativeLabels(negTexts))
}

// MatchHead is the scope of the parameters of the match head, and MatchWeight the name of its
// weight, which says that a model has one.
const (
	MatchHead   = "itm_head"
	MatchWeight = MatchHead + "/weight"
)

// MatchLogits returns the logits (R, 2) of the match head, class 1 meaning match, for the
// fused states (R, D) of the first tokens of pairs (Li et al. 2021, section 3.2).
func MatchLogits(s encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	return encoders.Classifier{Classes: 2}.Forward(s.In(MatchHead), states, 1)
}

// Matching is the image-text matching loss: the mean cross-entropy of logits (3B, 2)
// against labels (3B), class 1 meaning match (Li et al. 2021, eq. 3).
func Matching(logits, labels *gorgonia.Node) *gorgonia.Node {
	return contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: labels})
}
