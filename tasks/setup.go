package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
)

// Setup is what a task is evaluated with: a model, data and settings. Package run makes it of a configuration.
type Setup struct {
	Task   string // its name
	System System
	Model  Model
	Engine *compute.Engine
	Encoding
	Settings
	Source source.Setup // by which data is opened
	Split  string       // eval.split
	View   View

	Galleries data.Galleries // of the split; nil: the task reads none
	Set       *data.Eval     // images and captions behind Galleries; nil of stored features
	Texts     *data.Texts    // columns of texts; nil for a system without
	Opened    any            // what Task.Open returned
	Kept      map[string]any // what is kept for other evaluations of the split, see Keep

	// Train opens the training images without augmentation, with captions as they are written or cleaned.
	Train func(ctx context.Context, asWritten bool) (data.Stream, error)
	// Samples opens the samples of a downstream task in the split.
	Samples func(ctx context.Context) (data.Examples, error)
	// Rows are samples as rows of batches.
	Rows func(x data.Examples) data.Gallery
	// With are setups of further models, of the same split.
	With []*Setup
}

// System is what a model is, as far as tasks ask.
type System struct {
	Name  string // model.system
	Tuned string // task that it was fine-tuned for; empty: none
	Use   string // task that it is evaluated on unless asked otherwise

	Images, Texts, Words, Stored bool // what it reads; Texts may be stored
	Identities, Pairs            bool // it learns from identities of images, or from pairs of sentences
}

// View is how a model sees pictures.
type View struct {
	Input             transform.Input
	Size, Grid, Depth int // pixels and patches of a side, and blocks of the tower
	Fusion            int // fusion layers
}

// Settings are sections of a configuration, and what else package run gives, found by their type with Of.
type Settings []any

// All returns them.
func (s Settings) All() []any { return s }

// Of returns the settings of type T.
func Of[T any](s interface{ All() []any }) (settings T) {
	for _, o := range s.All() {
		switch x := o.(type) {
		case T:
			return x
		case *T:
			return *x
		}
	}
	panic(fmt.Sprintf("tasks: there are no settings of type %T", settings))
}

// Keep returns what open opens, which is kept for the next evaluations of a split.
func Keep[T any](s *Setup, key string, open func() (T, error)) (T, error) {
	if x, ok := s.Kept[key].(T); ok {
		return x, nil
	}
	x, err := open()
	if err == nil && s.Kept != nil {
		s.Kept[key] = x
	}
	return x, err
}

// Cleaned cleans a text as captions are.
func (s *Setup) Cleaned(text string) string {
	return data.Clean(s.Source.Data.Clean, text, s.Source.Data.MaxWords)
}

// OpenSamples is Task.Open of a downstream task, whose samples are those of a data.kind.
func OpenSamples(ctx context.Context, s *Setup) (any, error) { return s.Samples(ctx) }
