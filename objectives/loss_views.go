package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// views is the contrast of two views of an image against a queue (ViewContrast).
func (l *ITC) views(s *Step) []Part {
	needTeacher(s, "itc")
	banks := s.Banks()
	loss, accuracy := ViewContrast{
		Query: s.Online.Image.Features, Score: s.Scores.Score(ScoreTerms(s.Config), false),
		Positives: banks.Positives, Bank: banks.Image,
	}.Build()
	return []Part{s.Part("itc", l.Weight, loss), {Name: "itc_accuracy", Node: accuracy, Measure: true}}
}

// PrototypesName is the parameter of SwAV's prototypes.
const PrototypesName = "prototypes"

// SwAV is the swapped prediction of model.system = "swav": the code of one view, which prototypes it belongs to, is
// predicted from the other. Its weight is objective.itc.weight, its temperature and score (cosine or geodesic) are
// those of objective.itc too.
//
// See SwappedPrediction.
type SwAV struct {
	// number of prototypes
	Prototypes int `toml:"prototypes" fixed:"model" max:"1048576"`
	// temperature of the codes: smaller ones choose fewer prototypes
	Epsilon float64 `toml:"epsilon" max:"1000000"`
	// of Sinkhorn and Knopp, which balance the prototypes
	Iterations int `toml:"iterations" max:"1000"`
	// first steps in which the prototypes stay as they are
	FreezeSteps int `toml:"freeze_steps" max:"1000000000"`

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

// Defaults implements section.Defaulter.
func (l *SwAV) Defaults() { *l = SwAV{Prototypes: 3000, Epsilon: 0.05, Iterations: 3} }

// Check implements section.Checked.
func (l *SwAV) Check(k *section.Checker) {
	k.Positive("epsilon", "iterations")
	k.Require("prototypes", l.Prototypes >= 2, "must be >= 2")
	k.NotNegative("freeze_steps")
}

// Prepare implements Preparer: both views pass one encoder, and so do the crops where there are any.
func (l *SwAV) Prepare(s *Step) {
	s.Reads.Online.Image.Features, s.Reads.Online.Text.Features = true, true
}

// Build implements Loss.
func (l *SwAV) Build(s *Step) []Part {
	s = s.Whole()
	first, second := s.Online.Image.Features, s.Online.Text.Features // (B, C)
	score, banks := s.Scores.Score(ScoreTerms(s.Config), false), s.Banks()
	l.dim = first.Shape()[1]
	p := SwappedPrediction{
		Views: [2]*gorgonia.Node{first, second},
		Crops: s.Crops,
		Prototypes: s.Params.As(encoders.Traits{Settings: "objective.swav.prototypes to that"}).Param(PrototypesName,
			encoders.LinearDefault(l.dim), l.Prototypes, l.dim),
		Score: score, Epsilon: float32(l.Epsilon), Iterations: l.Iterations,
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
		p.Constants.CropImages, p.Constants.CropZeros = s.FixedInts("images of crops", images),
			s.FixedInts("zeros of crops", make([]int32, rows))
	}
	if banks != nil {
		p.Queue, p.Rows = banks.Image.Queue, banks.Usable
		if g := banks.Image.Graph; g != nil {
			p.Centres, p.Paths, p.Count = g.Centres, g.Paths, g.Count
		}
	}
	l.prototypes = s.Values(PrototypesName)
	return []Part{s.Part("swav", section.Of[ITC](s.Config).Weight, p.Build())}
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

// ViewContrast is the contrast of two views of an image against a queue (He et al. 2020,
// eq. 1): with the features q of one view through the encoder and the momentum features k
// of the other in the bank,
//
//	L = mean_i -log exp(s(q_i, k_i)/tau) / sum_j exp(s(q_i, x_j)/tau)
//
// where x_j runs over the bank and s is the cosine, as in MoCo, or the geodesic through
// the graph over the bank's queue (Mei et al., section 3.5). The other keys of the batch
// are negatives too, as in the pool of Mei et al.; MoCo adds them to the queue afterwards.
type ViewContrast struct {
	Query     *gorgonia.Node // (B, C) unit rows
	Bank      *Bank          // of the momentum features of the other views
	Score     Score
	Positives Positives // Labels: the column of each row's own key
}

// Build adds the loss to the step, a scalar, and the share of rows whose own key scores
// highest; columns that do not exist count as scores of 0 there.
func (c ViewContrast) Build() (loss, accuracy *gorgonia.Node) {
	logits := c.Score.Logits(c.Bank, c.Query, Image, c.Positives)
	loss = contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: c.Positives.Labels,
		Cols: c.Bank.Cols})
	return loss, contrast.Accuracy(logits, c.Positives.Labels)
}
