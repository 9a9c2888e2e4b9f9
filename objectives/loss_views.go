package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"gorgonia.org/gorgonia"
)

// MoCo is the contrast of two views of an image against a queue (ViewContrast) as a loss.
type MoCo struct {
	Weight float64
	Score  Terms
}

// Prepare implements Preparer: the first view passes the encoder, the second the momentum encoder.
func (l MoCo) Prepare(s *Step) {
	s.Reads.Online.Image.Features, s.Reads.Teacher.Text.Features = true, true
}

// Build implements Loss.
func (l MoCo) Build(s *Step) []Part {
	needTeacher(s, "itc")
	banks := s.Banks()
	loss, accuracy := ViewContrast{
		Query: s.Online.Image.Features, Score: s.Scores.Score(l.Score, false),
		Positives: banks.Positives, Bank: banks.Image,
	}.Build()
	return []Part{s.Part("itc", l.Weight, loss), {Name: "itc_accuracy", Node: accuracy, Measure: true}}
}

// PrototypesName is the parameter of SwAV's prototypes.
const PrototypesName = "prototypes"

// SwAV is swapped prediction between two views of an image (SwappedPrediction) as a loss.
type SwAV struct {
	Weight      float64
	Score       Terms
	Prototypes  int     // K
	Epsilon     float64 // temperature of the codes
	Iterations  int     // of Sinkhorn and Knopp
	FreezeSteps int     // first updates in which the prototypes stay as they are

	prototypes Values
	before     []float32 // the prototypes when Start was called
	dim        int
}

var (
	_ Preparer       = (*SwAV)(nil)
	_ Starter        = (*SwAV)(nil)
	_ Undoer         = (*SwAV)(nil)
	_ GradientFilter = (*SwAV)(nil)
)

// Prepare implements Preparer: both views pass one encoder, and so do the crops where there are any.
func (l *SwAV) Prepare(s *Step) {
	s.Reads.Online.Image.Features, s.Reads.Online.Text.Features = true, true
}

// Build implements Loss.
func (l *SwAV) Build(s *Step) []Part {
	s = s.Whole()
	first, second := s.Online.Image.Features, s.Online.Text.Features // (B, C)
	score, banks := s.Scores.Score(l.Score, false), s.Banks()
	l.dim = first.Shape()[1]
	p := SwappedPrediction{
		Views:      [2]*gorgonia.Node{first, second},
		Crops:      s.Crops,
		Prototypes: s.Params.As(encoders.Traits{Settings: "objective.swav.prototypes to that"}).Param(PrototypesName, encoders.LinearDefault(l.dim), l.Prototypes, l.dim),
		Score:      score, Epsilon: float32(l.Epsilon), Iterations: l.Iterations,
		Constants: SwappedConstants{
			One: s.SharedFloats("one", []float32{1}), Minus: s.SharedFloats("minus one", []float32{-1}),
			First: s.SharedInts("first", []int32{0}), Zeros: s.FixedInts("zeros", make([]int32, s.Rows)),
		},
	}
	if s.Crops != nil {
		rows := s.Crops.Shape()[0]
		images := make([]int32, rows)
		for i := range images {
			images[i] = int32(i / (rows / s.Rows))
		}
		p.Constants.CropImages, p.Constants.CropZeros = s.FixedInts("images of crops", images), s.FixedInts("zeros of crops", make([]int32, rows))
	}
	if banks != nil {
		p.Queue, p.Rows = banks.Image.Queue, banks.Usable
		if g := banks.Image.Graph; g != nil {
			p.Centres, p.Paths, p.Count = g.Centres, g.Paths, g.Count
		}
	}
	l.prototypes = s.Values(PrototypesName)
	return []Part{s.Part("swav", l.Weight, p.Build())}
}

// Start implements Starter: it brings the prototypes back to the unit sphere, where the
// last update left them at other lengths.
func (l *SwAV) Start(int) {
	l.before = append(l.before[:0], l.prototypes.Value()...)
	for x := l.prototypes.Value(); len(x) > 0; x = x[l.dim:] {
		scoring.Normalize(x[:l.dim])
	}
}

// Undo implements Undoer: to bring a vector to the unit sphere twice may change its last bits.
func (l *SwAV) Undo() { copy(l.prototypes.Value(), l.before) }

// FilterGradients implements GradientFilter: the gradient of frozen prototypes is 0; weight
// decay then changes their length alone, which Start restores.
func (l *SwAV) FilterGradients(update int) {
	if update < l.FreezeSteps {
		clear(l.prototypes.Grad())
	}
}
