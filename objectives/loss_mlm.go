package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// MLM is masked language modelling.
//
// It is MaskedLM as a loss over fused pairs: B masked
// captions with their own image, read at the masked places. It masks the captions itself.
//
// The number of masked tokens varies, the shapes of a compiled step do not: M = MaskCapacity rows, of
// which those that are not used have a label that is ignored.
type MLM struct {
	section.Weighted
	// probability that a token is chosen for prediction
	Prob float64 `toml:"prob"`

	masker Masker
	first  int // fused pairs before these

	masked           Masked
	student, teacher placesMemory
	labels           []int32

	// Of several ranks: what all have.
	whole           int // rows of the loss
	all             Masked
	tokens, lengths []int32
}

var _ Fused = (*MLM)(nil)

// Defaults implements section.Defaulter.
func (l *MLM) Defaults() { *l = MLM{Weighted: section.Weigh(1), Prob: 0.15} }

// Needs implements section.Needer.
func (*MLM) Needs() []section.Fact { return []section.Fact{section.Fusion} }

// Gives implements section.Giver.
func (*MLM) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft, section.States}
}

// Check implements section.Checked.
func (l *MLM) Check(k *section.Checker) {
	k.BelowOne("prob")
	k.Require("prob", l.Prob > 0 || !l.On(), "must be above 0 and below 1",
		"set objective.mlm.weight = 0 to switch the loss off")
}

// placesMemory is the memory of places.
type placesMemory struct {
	rows, texts []int32
	numbers     []int32 // in the global batch, where this process is one of several
}

func newPlaces(n int) placesMemory {
	return placesMemory{make([]int32, n), make([]int32, n), make([]int32, n)}
}

// input is the places as an input.
func (m placesMemory) input(s *Step, name string) encoders.Places {
	p := encoders.Places{Rows: s.SharedInts(name+" places", m.rows, len(m.rows)),
		Sequences: s.SharedInts(name+" texts", m.texts, len(m.texts))}
	if s.Ranks.Size() > 1 {
		p.Whole = s.SharedInts(name+" numbers", m.numbers, len(m.numbers))
	}
	return p
}

// set fills in places of texts of l tokens, first texts further on.
func (m placesMemory) set(places []int32, first, l int) {
	for i, p := range places {
		m.rows[i] = p + int32(first*l)
		m.texts[i] = p/int32(l) + int32(first)
	}
}

// Prepare implements Fused: it adds the masked captions to the inputs of the text tower.
func (l *MLM) Prepare(s *Step) {
	b, tokens := s.Rows, s.Fusion.TextLen
	l.masker = Masker{Prob: l.Prob, Vocab: s.Words.Vocab, MaskID: s.Words.MaskID, Specials: s.Words.Specials}
	l.masker.Capacity = MaskCapacity(b, tokens, l.masker.Prob)
	l.whole = MaskCapacity(b*s.Ranks.Size(), tokens, l.masker.Prob)
	s.Reads.Online.Image.Tokens, s.Reads.Online.Text.Masked = true, true
	if s.Alpha() != nil {
		s.Reads.Teacher.Image.Tokens, s.Reads.Teacher.Text.Masked = true, true
	}
	n := b * tokens
	ids, lengths := make([]int32, 2*n), make([]int32, 2*b) // clean captions, then masked ones
	captions := func(name string, rows, from int) encoders.Inputs {
		return encoders.Inputs{
			batch.Tokens:  s.SharedInts(name+"text", ids[from*tokens:][:rows*tokens], rows*tokens),
			batch.Lengths: s.SharedInts(name+"lengths", lengths[from:][:rows], rows),
		}
	}
	s.Captions = Captions{All: captions("", 2*b, 0), Clean: captions("clean ", b, 0), Masked: captions("masked ", b, b)}
	m := l.masker.Capacity
	l.student, l.teacher, l.labels = newPlaces(m), newPlaces(m), make([]int32, m)
	s.Read(batch.Column{Name: batch.Tokens, Shape: []int{tokens}, Type: batch.Int32},
		batch.Column{Name: batch.Lengths, Type: batch.Int32})
	s.OnFill(func(f *feed.Step) error {
		clean, words := f.Batch.Ints(batch.Tokens), f.Batch.Ints(batch.Lengths)
		copy(ids, clean)
		copy(lengths, words)
		copy(lengths[b:], words)
		if err := l.mask(s, f, clean, words); err != nil {
			return err
		}
		copy(ids[n:], l.masked.Tokens)
		copy(l.labels, l.masked.Labels)
		l.student.set(l.masked.Positions, l.first, tokens)
		l.teacher.set(l.masked.Positions, 0, tokens)
		return nil
	})
}

// mask masks the captions of this rank as those of the global batch are masked.
func (l *MLM) mask(s *Step, f *feed.Step, tokens, lengths []int32) (err error) {
	r := rng.New(s.Seed, rng.Mask, f.Stream())
	if s.Ranks.Size() == 1 {
		return l.masker.Apply(r, tokens, lengths, &l.masked)
	}
	g := s.Ranks.Group
	if l.tokens, err = g.GatherInts(l.tokens[:0], tokens); err != nil {
		return err
	}
	if l.lengths, err = g.GatherInts(l.lengths[:0], lengths); err != nil {
		return err
	}
	all := l.masker
	all.Capacity = l.whole
	if err := all.Apply(r, l.tokens, l.lengths, &l.all); err != nil {
		return err
	}
	first := l.masked.share(&l.all, tokens, g.Rank(), l.masker.Capacity)
	for i := range l.student.numbers {
		l.student.numbers[i] = int32(min(first+i, l.whole-1)) // those of rows without a label are any
	}
	copy(l.teacher.numbers, l.student.numbers)
	return nil
}

// Pairs implements Fused.
func (l *MLM) Pairs(s *Step, first int) FusedPairs {
	l.first = first
	p := FusedPairs{Count: s.Rows, Places: l.student.input(s, "mask"), WholePlaces: l.whole}
	if s.Reads.Online.Text.Tokens { // masked captions stand behind the clean ones
		p.Texts = gorgonia.Nodes{s.Count("masked texts", s.Rows, s.Rows, 1)}
		p.Images = gorgonia.Nodes{s.Count("batch", 0, s.Rows, 1)}
	}
	return p
}

// Loss implements Fused.
func (l *MLM) Loss(s *Step, states *gorgonia.Node) []Part {
	bert := s.Fusion.BERT
	labels := s.SharedInts("mask labels", l.labels, len(l.labels))
	logits := bert.MLMHead(s.Fusion.Params, states) // (M, V)
	var teacher *gorgonia.Node
	alpha := s.Alpha()
	if alpha != nil {
		at := l.teacher.input(s, "teacher mask")
		x := bert.Fusion(s.TeacherContext, s.Fusion.MomentumParams, encoders.FusionArgs{
			Texts: s.Teacher.Text.Masked, Lengths: s.Captions.Masked[batch.Lengths], Images: s.Teacher.Image.Tokens,
			At: &at, TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		}) // (M, D)
		teacher = bert.MLMHead(s.Fusion.MomentumParams, x) // (M, V)
	}
	return []Part{s.Part("mlm", l.Weight, s.mean(MaskedLM(logits, teacher, labels, alpha), labels))}
}

// MaskedLM is masked language modelling with momentum distillation (Li et al. 2021,
// eq. 4 and 7) over M rows of logits (M, V):
//
//	L = (1-alpha)*CE(labels) + alpha*H(softmax(teacher), softmax(logits))
//
// the mean over rows with a label >= 0. teacher and alpha may be nil.
func MaskedLM(logits, teacher, labels, alpha *gorgonia.Node) *gorgonia.Node {
	return contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Teacher: teacher, Labels: labels,
		Alpha: alpha})
}

// MaskCapacity returns M, the rows of the loss for b captions of l tokens, of which
// all but the first are selected with probability prob. The number selected varies,
// the shapes of a compiled step do not: M is its mean plus six standard deviations, which is too
// small about once in 1e9 batches, rounded up to a multiple of 8, at most all b*(l-1).
func MaskCapacity(b, l int, prob float64) int {
	n := float64(b) * float64(l-1)
	c := int(math.Ceil((n*prob + 6*math.Sqrt(n*prob*(1-prob))) / 8))
	return max(min(c*8, int(n)), 1)
}
