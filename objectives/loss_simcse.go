package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// SentenceHeadName is the parameters of the head of SimCSE that is left out in evaluation.
const SentenceHeadName = "sentence_head"

// SimCSE is the contrast of sentences of Gao et al. (2021, "SimCSE", equations 4 and 5): each text of a batch is
// compared with all texts of a second pass under other dropout masks, or with given positives and hard negatives
// (data.sentences.positive and negative), and should find its own.
//
// Text i of a batch should find its positive among the positives of all texts, and among their hard negatives where
// there are some,
//
//	L = -1/B sum_i log exp(s(h_i, h_i+)/tau) / sum_j (exp(s(h_i, h_j+)/tau) + a^[i=j] exp(s(h_i, h_j-)/tau))
//
// for the cosine s. Without given positives, h_i+ is the text itself under other dropout masks. There is one direction:
// texts search positives. All texts of a row pass the tower at once.
type SimCSE struct {
	section.Weighted
	// by which cosines are divided; constant
	Temperature float64 `toml:"temperature" max:"1000000"`
	// a linear layer with tanh between what model.text.pool gives and the contrast: training (left out in evaluation) |
	// always (kept, for model.system "simcse") | none
	Head string `toml:"head" fixed:"model"`
	// how often the own hard negative of a text counts in its denominator, the paper's alpha; the published flag of
	// that name is its logarithm
	HardNegativeWeight float64 `toml:"hard_negative_weight" when:"negatives" max:"1000000"`
}

var _ Preparer = (*SimCSE)(nil)

// Defaults implements section.Defaulter.
func (l *SimCSE) Defaults() {
	*l = SimCSE{Temperature: 0.05, Head: SentenceHeadTraining, HardNegativeWeight: 1}
}

// Values of objective.simcse.head.
const (
	SentenceHeadTraining = "training"
	SentenceHeadAlways   = "always"
	SentenceHeadNone     = "none"
)

// Gives implements section.Giver.
func (*SimCSE) Gives() []section.Fact {
	return []section.Fact{section.InBatch, section.States, section.Leading}
}

// Check implements section.Checked.
func (l *SimCSE) Check(k *section.Checker) {
	k.NotNegative("hard_negative_weight")
	k.OneOf("head", SentenceHeadTraining, SentenceHeadAlways, SentenceHeadNone)
	k.Require("hard_negative_weight", l.HardNegativeWeight >= 1e-6 || !k.Has(section.Negatives),
		"must be at least 0.000001", "leave out data.sentences.negative for none")
	alone, judged := k.Has(section.Sentences), k.Has(section.SentencePairs)
	k.Require("weight", l.On() || !alone || judged, "must be > 0", "it is the loss of "+k.Named())
	k.Require("weight", !l.On() || !judged, "must be 0", k.Named()+" is trained by objective.sentence_pairs.weight")
	checkTexts(k, l)
	k.Require("head", !l.On() || l.Head != SentenceHeadAlways || alone, "must be training or none",
		k.Named()+" has a head of its own for evaluation")
}

// checkTexts checks a contrast of two passes of a text.
func checkTexts(k *section.Checker, l section.Switched) {
	k.Require("temperature", k.Number("temperature") >= 1e-4, "must be at least 0.0001", "0.05 in the paper")
	if !l.On() {
		return
	}
	words, path := k.Has(section.Words), k.Path("weight")
	k.Require("weight", words && !k.Has(section.Fusion), "must be 0",
		k.Named()+` has no text tower of its own: use "simcse", "clip" or "matching"`)
	if !words {
		return
	}
	k.Require("weight", k.Has(section.Features), "must be 0 with model.interaction.kind",
		"it reads one vector for each text")
	space, err := headSpace(k)
	k.Require("weight", err != nil || !space.Tokens, "must be 0 with several class tokens",
		"it reads one vector for each text: choose another model.head.topology")
	k.Training("model.text.freeze", k.Value("model.text.freeze") == false, "must be false with "+path+" > 0",
		"it trains the text tower")
	k.Training("model.text.dropout", k.Number("model.text.dropout") > 0 || k.Has(section.Positives),
		"must be > 0 with "+path+" > 0", "two passes of a text differ by dropout alone")
}

// Prepare implements Preparer.
func (l *SimCSE) Prepare(s *Step) {
	if !s.Has(section.Positives) {
		s.readTwice()
		return
	}
	behind := []batch.Text{batch.PositiveText}
	if s.Has(section.Negatives) {
		behind = append(behind, batch.NegativeText)
	}
	s.Reads.Online.Text.Features, s.Reads.Online.Text.Behind = true, behind
}

// readTwice asks for a second pass of the texts under other dropout masks.
func (s *Step) readTwice() {
	s.Reads.Online.Text.Features, s.Reads.Online.Text.Behind = true, []batch.Text{batch.OwnText}
}

// Build implements Loss.
func (l *SimCSE) Build(s *Step) []Part {
	rows, all := s.Rows, s.All()
	z := s.leading(s.sentences("simcse", l.head(s)))                                                 // ((1+k)B, C)
	others := s.gatherStacks(layout.StridedRows(z, rows, 1, z.Shape()[0]-rows), z.Shape()[0]/rows-1) // (kN, C)
	logits := cosineLogits(layout.StridedRows(z, 0, 1, rows), others, l.Temperature)                 // (B, kN)
	if s.Has(section.Negatives) && l.HardNegativeWeight != 1 {
		logits = arith.Add(logits, s.SharedFloats("hard negative weight", l.weights(rows, all, s.First()), rows, 2*all))
	}
	part := s.Part("simcse", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits,
		Labels: s.Own()}))
	if part.Chance = math.Log(float64(all)); s.Has(section.Negatives) { // of cosines of 0
		part.Chance = math.Log(2*float64(all) - 1 + l.HardNegativeWeight)
	}
	return []Part{part, {Name: "simcse_accuracy", Node: contrast.Accuracy(logits, s.Own()), Measure: true}}
}

// weights (B, 2N), log a where a text meets its own hard negative, are added to the logits; the first text is that of a
// place among all N.
func (l *SimCSE) weights(rows, all, first int) []float32 {
	w := make([]float32, rows*2*all)
	for i := range rows {
		w[i*2*all+all+first+i] = float32(math.Log(l.HardNegativeWeight))
	}
	return w
}

// head is that of the loss alone, which evaluation lacks; nil: that of the side.
func (l *SimCSE) head(s *Step) encoders.Head {
	sphere := space.Space{Dim: s.Online.Text.Width, Spheres: 1}
	switch l.Head {
	case SentenceHeadTraining:
		return encoders.TanhHead(sphere)
	case SentenceHeadNone:
		return encoders.Projection{Space: sphere, Identity: true}
	}
	return nil
}

// sentences are unit vectors of the texts and behind them those of Read.Behind: through a head of the loss, or the
// side's where it is nil, for the loss of that name: ((1+k)B, C).
func (s *Step) sentences(name string, head encoders.Head) *gorgonia.Node {
	x := s.Online.Text
	Need(x.Behind != nil, name, "needs a text tower that reads the texts twice")
	scope := s.Params.As(encoders.Traits{}).In(SentenceHeadName)
	if head == nil {
		head, scope = x.Head, x.Scope
	}
	return head.Project(s.Student, scope, layout.ConcatRows(x.Classes, x.Behind))
}

// cosineLogits are those of unit vectors a (M, C) and b (N, C): (M, N).
func cosineLogits(a, b *gorgonia.Node, temperature float64) *gorgonia.Node {
	return arith.Combine([]float32{float32(1 / temperature)}, nn.Linear(a, b, nil))
}
