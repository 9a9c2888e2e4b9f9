package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
)

// LabelledSet is a split whose images belong to classes; *data.Eval is one.
type LabelledSet interface {
	data.Galleries
	data.Labelled
}

// Probe measures what frozen features of images tell about their classes: the accuracy of
// a linear classifier on them, and of the vote of nearest neighbours. Features are the
// class token of the vision tower, before any head (He et al. 2020, section 4.1), or all of
// them one after the other (clip-mtob, section 4).
//
// With n training images, n' test images and m class tokens of width D it keeps
// 4 bytes x (n+n')*m*D.
type Probe struct {
	Model ClassEncoder
	// Train gives the training images, which are not augmented; the first Samples are
	// used, and of a finite stream no image twice. It must be a data.LabelledStream.
	Train      data.Stream
	Samples    int
	Set        LabelledSet
	Engine     *kernel.Engine
	BatchSize  int     // images encoded at a time, at least 1
	Decay      float64 // of the linear classifier, see eval.ProbeOptions
	Neighbours int     // that vote, at least 1
	Workers    int     // goroutines that decode images; 0: 1
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// ProbeScores are percentages of the test images that get their class.
type ProbeScores struct {
	Top1       float64 // by the linear classifier
	Neighbours float64 // by the vote of nearest neighbours
	Chance     float64 // by the class that is commonest in training
	Train      int     // labelled training images used
	Test       int     // labelled test images
	Classes    int
}

// Map names the scores for logs.
func (s ProbeScores) Map() map[string]float64 {
	return map[string]float64{"top1": s.Top1, "knn_top1": s.Neighbours, "chance": s.Chance}
}

// Table formats the scores for people.
func (s ProbeScores) Table() string {
	return fmt.Sprintf("%-12s %6s\n%-12s %6.2f\n%-12s %6.2f\n%-12s %6.2f\n", "", "top-1", "linear", s.Top1, "k-NN", s.Neighbours, "chance", s.Chance)
}

// labelled is encoded images with their classes.
type labelled struct {
	features []float32 // (n, D)
	labels   []int32
}

// Run encodes both parts, fits and classifies. It ends early with the error of ctx.
func (p Probe) Run(ctx context.Context) (ProbeScores, error) {
	var s ProbeScores
	if p.BatchSize < 1 || p.Samples < 1 || p.Neighbours < 1 {
		return s, fmt.Errorf("tasks: eval.batch_size, eval.probe_samples and eval.probe_neighbours must be at least 1 (got %d, %d and %d)", p.BatchSize, p.Samples, p.Neighbours)
	}
	names, ok := p.Set.Labels()
	source, labels := p.Train.(data.LabelledStream)
	if labels {
		_, labels = source.Labels()
	}
	if !ok || !labels {
		return s, fmt.Errorf(`tasks: the probe needs images with classes, which this data has not: use data.kind "folder" or "scenes"`)
	}
	n := min(p.Samples, p.Train.EpochSamples())
	train, err := p.encode(ctx, "encoding training images", samples{p.Train, n}, func(i int) int32 { return source.SampleLabel(uint64(i)) })
	if err != nil {
		return s, err
	}
	test, err := p.encode(ctx, "encoding test images", p.Set.Images(), p.Set.Label)
	if err != nil {
		return s, err
	}
	s.Train, s.Test, s.Classes = len(train.labels), len(test.labels), len(names)
	return s, p.classify(ctx, &s, train, test)
}

// classify fills in the accuracies.
func (p Probe) classify(ctx context.Context, s *ProbeScores, train, test labelled) error {
	linear, err := eval.FitProbe(ctx, p.Engine, train.features, train.labels, eval.ProbeOptions{Classes: s.Classes, Decay: p.Decay})
	if err != nil {
		return err
	}
	predicted, err := linear.Predict(test.features, s.Test)
	if err != nil {
		return err
	}
	s.Top1 = eval.Accuracy(predicted, test.labels)
	predicted, err = eval.NearestNeighbours(ctx, p.Engine, train.features, train.labels, s.Classes, test.features, s.Test, p.Neighbours)
	if err != nil {
		return err
	}
	s.Neighbours = eval.Accuracy(predicted, test.labels)
	commonest := eval.Commonest(train.labels, s.Classes)
	s.Chance = eval.Accuracy(slices.Repeat([]int32{commonest}, s.Test), test.labels)
	return nil
}

// encode returns the class tokens of a gallery's images, without those of unknown class. A
// training sample that cannot be read is an error here.
func (p Probe) encode(ctx context.Context, phase string, g data.Gallery, label func(i int) int32) (out labelled, err error) {
	some := Some{Gallery: g}
	for i := range g.Len() {
		if l := label(i); l != data.UnknownLabel {
			some.Rows, out.labels = append(some.Rows, i), append(out.labels, l)
		}
	}
	if len(out.labels) == 0 {
		return out, fmt.Errorf("tasks: %s: no image has a class", phase)
	}
	e := Encoding{BatchSize: p.BatchSize, Workers: p.Workers, Progress: p.Progress}
	if out.features, err = e.ClassTokens(ctx, p.Model, some, phase); err != nil {
		return out, fmt.Errorf("tasks: %s: %w", phase, err)
	}
	return out, nil
}

// samples are the first n samples of a stream as a gallery.
type samples struct {
	data.Stream
	n int
}

// Len implements data.Gallery.
func (s samples) Len() int { return s.n }

// Fill implements data.Gallery.
func (s samples) Fill(i int, row batch.Row) error { return s.Sample(uint64(i), row) }
