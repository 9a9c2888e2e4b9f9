package probe

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
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
	Model tasks.ClassEncoder
	// Train gives the training images, which are not augmented; the first Samples are
	// used, and of a finite stream no image twice. It must be a data.LabelledStream.
	Train      data.Stream
	Samples    int
	Set        LabelledSet
	Classifier // of which Neighbours are at least 1
	tasks.Encoding
}

// Run encodes both parts, fits and classifies. It ends early with the error of ctx.
func (p Probe) Run(ctx context.Context) (Scores, error) {
	var s Scores
	if p.BatchSize < 1 || p.Samples < 1 || p.Neighbours < 1 {
		return s, fmt.Errorf("tasks: eval.batch_size, eval.probe_samples and eval.probe_neighbours must be at least 1 (got %d, %d and %d)", p.BatchSize, p.Samples, p.Neighbours)
	}
	names, ok := p.Set.Labels()
	source, labels := p.Train.(data.LabelledStream)
	if labels {
		_, labels = source.Labels()
	}
	if !ok || !labels {
		return s, fmt.Errorf(`tasks: the probe needs images with classes, which this data lacks: use data.kind "folder" or "scenes"`)
	}
	n := min(p.Samples, p.Train.EpochSamples())
	train, err := p.encode(ctx, "encoding training images", tasks.First{Stream: p.Train, N: n},
		func(i int) int32 { return source.SampleLabel(uint64(i)) })
	if err != nil {
		return s, err
	}
	test, err := p.encode(ctx, "encoding test images", p.Set.Images(), p.Set.Label)
	if err != nil {
		return s, err
	}
	return p.Classify(ctx, train, test, names, p.Progress)
}

// encode returns the class tokens of a gallery's images, without those of unknown class. A
// training sample that cannot be read is an error here.
func (p Probe) encode(ctx context.Context, phase string, g data.Gallery, label func(i int) int32) (out Labelled,
	err error) {
	some, labels := tasks.Known(g, label)
	out.Labels = labels
	if len(out.Labels) == 0 {
		return out, fmt.Errorf("tasks: %s: no image has a class", phase)
	}
	if out.Features, err = p.ClassTokens(ctx, p.Model, some, phase); err != nil {
		return out, fmt.Errorf("tasks: %s: %w", phase, err)
	}
	return out, nil
}
