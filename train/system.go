package train

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
)

// Trainable is a model with parameters that training changes.
type Trainable interface {
	Params() *model.Params
	// Learnable says whether training changes the parameter of a name.
	Learnable(name string) bool
}

// System is a model that a Session trains on images, with or without their captions.
type System interface {
	Trainable
	// Forward computes losses and gradients of a batch and changes no state.
	Forward(b model.Batch, c model.Control) (*model.Result, error)
	// Before prepares what a step reads besides parameters and batch; step is the number
	// of updates made before.
	Before(step int) error
	// Queue returns the queue of momentum features, or nil.
	Queue() *model.Queue
	// Graphs returns the graphs over the queue, or nil.
	Graphs() *model.Graphs
	// MomentumFeatures returns the features of the last batch that enter the queue with
	// the update, empty without a teacher.
	MomentumFeatures() (model.Keys, error)
	// Temperature returns the contrast's temperature, 0 where the model has none.
	Temperature() float64
	// ClampTemperature keeps the temperature in its range, as after every update.
	ClampTemperature()
	// Footprint returns the memory of training.
	Footprint() model.Footprint
	// Machine returns the compiled training step, for profiles.
	Machine() *compute.Machine
	// ImageGrid returns the number of patches along a side of an image.
	ImageGrid() int
	// Close ends work that goes on beside the steps.
	Close() error
}

var (
	_ System = (*model.ALBEF)(nil)
	_ System = (*model.CLIP)(nil)
	_ System = (*model.MoCo)(nil)
	_ System = (*model.SwAV)(nil)
)

// masking is a system with masked language modelling.
type masking interface {
	// MaskRows returns the rows of the language-modelling loss, 0 without one.
	MaskRows() int
}

// NewSystem builds the model of a configuration for a vocabulary of vocab tokens, with
// freshly initialised parameters. The engine stays the caller's.
func NewSystem(cfg config.Config, vocab int, engine *compute.Engine) (System, error) {
	switch cfg.Model.System {
	case "albef":
		return model.NewALBEF(cfg, vocab, engine)
	case "clip":
		return model.NewCLIP(cfg, vocab, engine)
	case "moco":
		return model.NewMoCo(cfg, engine)
	case "swav":
		return model.NewSwAV(cfg, engine)
	}
	return nil, fmt.Errorf("train: model.system %q is not trained on images: use package model in a program of your own", cfg.Model.System)
}
