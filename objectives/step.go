package objectives

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Loss is one objective of a step, as a rule a section of the configuration, [objective.NAME], that embeds
// section.Weighted. It is built once, where it is on, and owns what it needs besides the towers: parameters, inputs
// with the schedules that fill them, random numbers.
//
// What it reads it tells by Gives, by which it is known what else is read: the score and temperature of objective.itc,
// the teacher, the queue. A loss that tells nothing reads the features of both sides.
type Loss interface {
	// Build adds the loss to the step and returns its parts.
	Build(s *Step) []Part
}

// Preparer is a loss that says before the towers are built what it reads of them, by
// s.Reads, or adds inputs that they read. Without it a loss reads the features of both
// sides that the system encodes anyway.
type Preparer interface {
	Loss
	Prepare(s *Step)
}

// Columned is a loss that reads columns of a batch besides those of the towers, which are known without building it.
type Columned interface{ Columns(h Host) []batch.Column }

// Classifier is a loss whose head tells the classes of rows, or scores them, when the model is used too.
type Classifier interface {
	// Outputs are the logits (n, classes) or the scores (n, 1) of n rows by the class tokens (n, D) that a tower made
	// of them, or of a Fused by the fused states of their first tokens.
	Outputs(s *Step, x Side) *gorgonia.Node
}

// Starter is a loss with something to do before each update, such as bringing parameters
// back to where they belong. update is the number of updates made before.
type Starter interface{ Start(update int) }

// Undoer is a Starter that takes back what Start changed, when the step that it was for is
// not made. One whose Start changes nothing when it is called again needs no Undo.
type Undoer interface{ Undo() }

// Finisher is a loss with something to do after each update, such as keeping a parameter in its range: what is saved
// then is what the next step begins with.
type Finisher interface{ Finish() }

// GradientFilter is a loss that changes gradients before they are used.
type GradientFilter interface{ FilterGradients(update int) }

// Part is a named scalar of a step: a loss with its weight in the total, or a measure that
// is only logged.
type Part struct {
	Name    string
	Node    *gorgonia.Node
	Weight  float64
	Measure bool // no part of the loss, such as an accuracy
	// Chance is the value of a loss for a model that knows nothing, one whose scores are all 0;
	// 0 where that is not known.
	Chance float64
	// Share is a scalar that the weight is multiplied with, such as a warm-up; nil: 1.
	Share *gorgonia.Node
}

// Step is a training step under construction as the losses see it. The two sides of a pair
// are called image and text, whatever they are made of; in systems of images alone they
// are two views of an image.
//
// B rows, C channels of the shared space.
type Step struct {
	*feed.Inputs
	Host
	Rows  int    // B
	Seed  uint64 // of the random streams
	Ranks Ranks  // the processes of which each has as many rows

	Params, MomentumParams  encoders.Scope    // parameters and their momentum copies
	Student, TeacherContext *encoders.Context // dropout of the online and of the teacher's towers
	Online, Teacher         Sides             // what the towers made of the batch; Teacher is empty without one
	// (B*V, C) features of V further views of each image, one image after the other; nil without
	Crops    *gorgonia.Node
	Reads    Reads    // what losses read of the towers, before they are built
	Captions Captions // inputs of the text tower, where there is one
	// (B) int32, rows of one id are positives of each other; nil: pairs are told by their place
	IDs    *gorgonia.Node
	Scores Scores
	Fusion *Fusion // layers over pairs, nil without
	// of the weight of the teacher's soft targets, nil without a teacher
	Distill     *Ramp
	Dims        []int       // leading channels that losses are computed over too, see Matryoshka
	Memory      Memory      // past features, nil without a queue and without a teacher
	Judge       Judge       // of hard negatives, or nil
	Relabelling Relabelling // what becomes of negatives that Judge takes for matches
	// share of the uniform distribution in the targets of the contrast, from the second epoch on
	Uniform float64
	// of the score that negatives of matching are drawn by; nil: that of the contrast
	NegativeTerms Terms
	PairTerms     Terms // of the score of pairs without a queue
	// from how many logits on the contrast within the batch is computed without memory for them, where nothing else reads
	// them (contrast.Tiled); 0: never
	TileFrom int
	// scores pairs by their tokens, instead of features and PairTerms; nil: by features
	Interaction encoders.Interaction
	// class tokens and what stands around a text take part in Interaction
	AllTokens bool
	Values    func(name string) Values // memory of a parameter by name

	ScoreTeacher        ScoreTeacher // whose scores objective.distill_scores reads, or nil
	Reference           *Reference   // that objective.klot keeps to, or nil
	ImagePool, TextPool batch.Pool   // rows of stored features by their numbers, or nil

	banks        *Banks
	pairScores   *gorgonia.Node // of Interaction, once they are built
	similarities Contrast       // of the first contrast that was built
	channels     int            // leading ones that features have here; 0: all
	relabelled   *Relabelled    // by Judge, once it was asked
	parts        []Part         // of the losses built so far
	alpha        *gorgonia.Node
	own, whole   *Step // of a step of Whole that of this rank, and of that one the other, once it was asked for
}

// Judge returns the logits (R, 2), class 1 meaning match, that a frozen model gives pairs
// of a text and an image of the batch, each (R) int32.
type Judge func(s *Step, texts, images *gorgonia.Node) *gorgonia.Node

// Values is the memory of a parameter in training, for losses that look after one.
type Values interface {
	Value() []float32
	Grad() []float32
}

// Sides are both sides of the pairs of a batch.
type Sides struct{ Image, Text Side }

// Side is one side of a batch as a tower and its head give it.
type Side struct {
	encoders.Sequence
	Features *gorgonia.Node // (B, C); nil where nothing reads the side
	View     *gorgonia.Node // (B, C) features of a second masked view, nil without
	Behind   *gorgonia.Node // (k*B, Width) class tokens of the k texts of Read.Behind, nil without
	// (B*Len, Width) states of the masked captions, unless they are in Tokens behind the clean ones
	Masked *gorgonia.Node
	Head   encoders.Head
	Scope  encoders.Scope // of the head's parameters
	own    *Side          // of a side of Step.Whole: that of this rank
}

// Reads says what losses read of the towers besides features.
type Reads struct{ Online, Teacher SideReads }

// SideReads says it for both sides.
type SideReads struct{ Image, Text Read }

// Read says it for one side.
type Read struct {
	Features bool // only in systems that do not encode the side anyway
	Tokens   bool // token states
	Masked   bool // token states of the masked captions
	// Behind are further texts of each row that pass the text tower in one pass with its own: the same one again is
	// another draw of the dropout masks.
	Behind []batch.Text
	// Second, of images: those of batch.SecondImages pass the tower in one pass behind those of batch.Images. Tokens
	// are of both then, (2B*Len, Width), and class tokens and features of the first alone.
	Second bool
}

// Captions are the inputs of the text tower.
type Captions struct {
	Clean encoders.Inputs // (B)
	// With masked language modelling: masked captions (B), and the clean ones with the
	// masked ones behind them (2B).
	Masked, All encoders.Inputs
}

// Fusion is the layers with cross-attention over pairs of a text and an image.
type Fusion struct {
	encoders.BERT
	Params, MomentumParams encoders.Scope // of the text tower, which the layers continue
	TextLen, ImageLen      int            // L and T, tokens of a text and of an image
}

// Need stops the construction of a step that lacks what a loss reads, with the
// *op.BuildError that op.Catch turns into an error.
func Need(ok bool, loss, format string, args ...any) {
	if !ok {
		panic(&op.BuildError{Op: loss, Err: fmt.Errorf(format, args...)})
	}
}

// Add builds a loss and adds its parts to those of the step, and behind them those over leading channels.
func (s *Step) Add(l Loss) {
	parts := l.Build(s)
	s.parts = append(s.parts, parts...)
	if g, ok := l.(section.Giver); !ok || !slices.Contains(g.Gives(), section.Leading) {
		return
	}
	for _, d := range s.Dims {
		for _, p := range l.Build(s.truncated(d)) {
			if !p.Measure {
				p.Name = fmt.Sprintf("%s_%d", p.Name, d)
				s.parts = append(s.parts, p)
			}
		}
	}
}

// Parts returns the parts of the losses added so far, in the order of the log: before those of
// a loss stand measures of what it was the first of several losses to make.
func (s *Step) Parts() []Part { return s.parts }

// Own are the places of the batch's own pairs among those that they are compared with, 0, 1, ... B-1 on one process.
func (s *Step) Own() *gorgonia.Node {
	if s.own != nil {
		return s.Count("columns of all", 0, s.Rows, 1)
	}
	return s.Count("own columns", s.First(), s.Rows, 1)
}

// Part returns a part that is in the total.
func (s *Step) Part(name string, weight float64, loss *gorgonia.Node) Part {
	return Part{Name: name, Node: loss, Weight: weight}
}

// CrossEntropy is the mean over those rows that have a label, of all ranks.
func (s *Step) CrossEntropy(x contrast.CrossEntropyArgs) *gorgonia.Node {
	return s.mean(contrast.CrossEntropy(x), x.Labels)
}

// Classification returns the parts of a loss that tells classes: the cross-entropy of logits (R, K) and the accuracy.
func (s *Step) Classification(name string, weight float64, x contrast.CrossEntropyArgs) []Part {
	part := s.Part(name, weight, s.CrossEntropy(x))
	part.Chance = math.Log(float64(x.Logits.Shape()[1]))
	return []Part{part,
		{Name: name + "_accuracy", Node: s.mean(contrast.Accuracy(x.Logits, x.Labels), x.Labels), Measure: true}}
}

// Alpha is the weight of the teacher's soft targets at each step, a scalar; nil without.
func (s *Step) Alpha() *gorgonia.Node {
	if s.Distill == nil || s.Distill.To == 0 {
		return nil
	}
	if s.alpha == nil {
		ramp := *s.Distill
		s.alpha = s.Floats("alpha", func(f *feed.Step, dst []float32) error {
			dst[0] = float32(ramp.At(f.Update, f.PerEpoch))
			return nil
		})
	}
	return s.alpha
}

// Distilled are what losses read online and, where there are soft targets, of the teacher.
func (s *Step) Distilled() []*SideReads {
	if s.Alpha() == nil {
		return []*SideReads{&s.Reads.Online}
	}
	return []*SideReads{&s.Reads.Online, &s.Reads.Teacher}
}

// HasTeacher says whether there is a momentum encoder.
func (s *Step) HasTeacher() bool { return s.TeacherContext != nil }

// needTeacher requires a teacher.
func needTeacher(s *Step, loss string) {
	Need(s.HasTeacher(), loss, "needs the teacher: set momentum.enabled = true, or use objective.itc.in_batch_weight")
}

// Backbone returns the class tokens (B*m, D) of each sample of a side as one row, (B, m*D).
func (s *Step) Backbone(x Side) *gorgonia.Node {
	Need(x.Classes != nil, "class tokens", `are not kept of several micro-batches: set train.accumulate = "gradients"`)
	return layout.Reshape(x.Classes, s.Rows, x.Classes.Shape().TotalSize()/s.Rows)
}

// Banks are the momentum features that a contrast compares with; nil without any.
func (s *Step) Banks() *Banks {
	if s.own != nil {
		return s.own.Banks()
	}
	if s.banks == nil && s.Memory != nil {
		s.banks = s.Memory.Banks(s)
	}
	return s.banks
}
