package train

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/model"
)

// Trainable is a model with parameters that training changes.
type Trainable interface {
	Params() *model.Params
	// Learnable says whether training changes the parameter of a name.
	Learnable(name string) bool
}

// System is what a Session trains. Abilities that not every system has are interfaces of
// one method below.
type System interface {
	Trainable
	// Group is the processes that train the system together, this one among them.
	Group() parallel.Group
	// Columns are the columns of a batch that Step reads.
	Columns() []batch.Column
	// Step computes losses and gradients of a micro-batch and changes nothing that a later
	// step reads. It ends early with the error of ctx.
	Step(ctx context.Context, s *feed.Step) (*model.Result, error)
}

// comparer is a system whose losses compare the pairs of all micro-batches of an update
// (train.accumulate = "features"). A step is Encode of each, Compare, and Backward of each.
type comparer interface {
	// Encode keeps the features of a micro-batch.
	Encode(ctx context.Context, s *feed.Step) error
	// Compare computes the losses, and the gradients of parameters that are no tower's or head's.
	Compare(ctx context.Context, s *feed.Step) (*model.Result, error)
	// Backward computes the gradients of towers and heads of a micro-batch.
	Backward(ctx context.Context, s *feed.Step) error
}

// starter prepares what a step reads besides parameters and batch; update is the number of
// updates made before.
type starter interface{ Before(update int) error }

// undoer takes back what Before did for an update that is not made.
type undoer interface{ Undo() }

// finisher is told that an update was made.
type finisher interface{ After() error }

// tempered is a system whose scores are divided by a temperature.
type tempered interface{ Temperature() float64 }

// closer has work beside the steps to end.
type closer interface{ Close() error }

var (
	_ System   = (*model.Trainer)(nil)
	_ comparer = (*model.Trainer)(nil)
	_ starter  = (*model.Trainer)(nil)
	_ undoer   = (*model.Trainer)(nil)
	_ finisher = (*model.Trainer)(nil)
	_ agreeing = (*model.Trainer)(nil)
	_ tempered = (*model.Trainer)(nil)
	_ closer   = (*model.Trainer)(nil)
)

// ModelOptions is what a model for training needs besides its configuration.
type ModelOptions struct {
	Engine    *compute.Engine      // stays the caller's
	Tokenizer *tokenizer.Tokenizer // nil for a system without texts
	Group     parallel.Group       // processes that train the model together; nil: this one alone
	Stream    data.Stream          // of the samples; the model reads the pools of a data.Pooled
	Rows      int                  // of the word embeddings; 0: one for each token
	Start     model.Source         // of values that parameters start from; nil: all are random
}

// NewModel builds the model of a configuration for training, with freshly initialised
// parameters, the frozen models of objective.mafa and objective.distill_scores and the alignment of objective.klot.
// Close it after use.
func NewModel(cfg config.Config, with ModelOptions) (*model.Trainer, error) {
	if err := canMask(cfg, with.Tokenizer); err != nil {
		return nil, err
	}
	o := with.options()
	var err error
	if o.Classes, err = trainingClasses(cfg, with.Stream); err != nil {
		return nil, err
	}
	if p, ok := with.Stream.(data.Pooled); ok {
		o.ImagePool, o.TextPool = p.Pools()
	}
	if c, ok := with.Stream.(data.Centred); ok {
		o.ImageCentre, o.TextCentre = c.Centres()
	}
	done, err := connect(&o, cfg, with.Tokenizer)
	if err != nil {
		return nil, err
	}
	defer done()
	taught, err := teach(&o, cfg, with.Tokenizer)
	if err != nil {
		return nil, err
	}
	defer taught()
	if err := refer(&o, cfg, with.Stream); err != nil {
		return nil, err
	}
	return model.New(cfg, o)
}

// Layout returns the parameters of the model of a configuration without their memory, see model.Layout.
func Layout(cfg config.Config, with ModelOptions) (*model.Params, error) {
	if err := canMask(cfg, with.Tokenizer); err != nil {
		return nil, err
	}
	return model.Layout(cfg, with.options())
}

// OpenWeights returns the model of a configuration for inference, with the parameters of with.Start.
func OpenWeights(cfg config.Config, with ModelOptions) (*model.Model, error) {
	return model.Open(cfg, with.options(), with.Start)
}

// options are those of the model.
func (with ModelOptions) options() model.Options {
	o := modelOptions(with.Tokenizer, with.Engine)
	o.Group, o.Start = with.Group, with.Start
	if with.Rows > 0 {
		o.Vocab = with.Rows
	}
	return o
}

// canMask refuses masked language modelling without a token to mask with.
func canMask(cfg config.Config, tok *tokenizer.Tokenizer) error {
	w := cfg.Objective.MLM.Weight
	if w == 0 || tok == nil || tok.MaskID() >= 0 || !cfg.Has(section.Steps) {
		return nil
	}
	return config.Errors{{Path: "objective.mlm.weight", Value: w,
		Msg:  "needs a tokenizer with [MASK] or <mask>, which data.vocab lacks",
		Hint: "set it to 0, or choose another data.vocab"}}
}

// modelOptions are those of a tokenizer, which may be nil, and an engine.
func modelOptions(tok *tokenizer.Tokenizer, engine *compute.Engine) model.Options {
	o := model.Options{Engine: engine}
	if tok != nil {
		o.Vocab, o.MaskID, o.Specials, o.Pad = tok.Size(), tok.MaskID(), tok.Specials(), int(tok.PadRow())
		o.Begin, o.End = tok.Ends()
		o.BeginID, o.EndID = tok.ClsID(), tok.SepID()
	}
	return o
}
