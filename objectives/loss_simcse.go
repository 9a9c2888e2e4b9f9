package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// SentenceHeadName is the parameters of the head of SimCSE that is left out in evaluation.
const SentenceHeadName = "sentence_head"

// SimCSE is the contrast of sentences of Gao et al. (2021, "SimCSE"). Text i of a batch should find its positive among the
// positives of all texts, and among their hard negatives where there are some (equations 4 and 5),
//
//	L = -1/B sum_i log exp(s(h_i, h_i+)/tau) / sum_j (exp(s(h_i, h_j+)/tau) + a^[i=j] exp(s(h_i, h_j-)/tau))
//
// for the cosine s. Without given positives, h_i+ is the text itself under other dropout masks. There is one direction: texts
// search positives. All texts of a row pass the tower at once.
type SimCSE struct {
	Weight      float64
	Temperature float64 // tau
	// Head is that of the loss alone, which evaluation has not; nil: the features of the side.
	Head               encoders.Head
	Positives          bool    // rows have a positive, batch.PositiveText; else it is the text again
	Negatives          bool    // rows have a hard negative too, batch.NegativeText
	HardNegativeWeight float64 // a
}

var _ Preparer = SimCSE{}

// Prepare implements Preparer.
func (l SimCSE) Prepare(s *Step) {
	if !l.Positives {
		s.readTwice()
		return
	}
	behind := []batch.Text{batch.PositiveText}
	if l.Negatives {
		behind = append(behind, batch.NegativeText)
	}
	s.Reads.Online.Text.Features, s.Reads.Online.Text.Behind = true, behind
}

// readTwice asks for a second pass of the texts under other dropout masks.
func (s *Step) readTwice() {
	s.Reads.Online.Text.Features, s.Reads.Online.Text.Behind = true, []batch.Text{batch.OwnText}
}

// Build implements Loss.
func (l SimCSE) Build(s *Step) []Part {
	rows, all := s.Rows, s.All()
	z := s.sentences("simcse", l.Head)                                                               // ((1+k)B, C)
	others := s.gatherStacks(layout.StridedRows(z, rows, 1, z.Shape()[0]-rows), z.Shape()[0]/rows-1) // (kN, C)
	logits := cosineLogits(layout.StridedRows(z, 0, 1, rows), others, l.Temperature)                 // (B, kN)
	if l.Negatives && l.HardNegativeWeight != 1 {
		logits = arith.Add(logits, s.SharedFloats("hard negative weight", l.weights(rows, all, s.First()), rows, 2*all))
	}
	part := s.Part("simcse", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: s.Own()}))
	part.Chance = l.chance(all)
	return []Part{part, {Name: "simcse_accuracy", Node: contrast.Accuracy(logits, s.Own()), Measure: true}}
}

// weights (B, 2N), log a where a text meets its own hard negative, are added to the logits; the first text is that of a place among
// all N.
func (l SimCSE) weights(rows, all, first int) []float32 {
	w := make([]float32, rows*2*all)
	for i := range rows {
		w[i*2*all+all+first+i] = float32(math.Log(l.HardNegativeWeight))
	}
	return w
}

// chance is the loss of cosines of 0.
func (l SimCSE) chance(rows int) float64 {
	if !l.Negatives {
		return math.Log(float64(rows))
	}
	return math.Log(2*float64(rows) - 1 + l.HardNegativeWeight)
}

// sentences are unit vectors of the texts and behind them those of Read.Behind: through a head of the loss, or the side's where
// it is nil, for the loss of that name: ((1+k)B, C).
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
