package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data"
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
	Reading
	View View

	Galleries data.Galleries // of the split; nil: the task reads none
	Set       *data.Eval     // images and captions behind Galleries; nil of stored features
	Texts     *data.Texts    // columns of texts; nil for a system without
	Opened    any            // what Task.Open returned

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

// Reading is how texts become tokens, and where files lie.
type Reading struct {
	Root, Split      string // data.root and eval.split
	Kind             string // data.kind
	Clean            string // rule by which texts are cleaned
	MaxWords, Tokens int
}

// Cleaned cleans a text as captions are.
func (r Reading) Cleaned(s string) string { return data.Clean(r.Clean, s, r.MaxWords) }

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
