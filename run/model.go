package run

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Encoder is one side of a Model.
type Encoder interface {
	tasks.Encoder
	tasks.ClassEncoder
}

// Model is a trained system as evaluations, embeddings and pages use it: one of towers or
// heads, a *model.Model, or a fitted map, a *model.Aligned.
type Model interface {
	Image() Encoder
	Text() Encoder
	Matcher() tasks.Matcher // the match head, nil without one
	Dim() int               // C, channels of the shared space
	// PairScore is the score by which stored features of images and texts are compared.
	PairScore() (scoring.Score, error)
	// Metric returns the learned metric of pairs, nil without one.
	Metric() (*scoring.Metric, error)
}

// openModel opens the model of a checkpoint, which must stay open. tok is nil for a system
// without texts. With twin the momentum encoder
// take the place of the parameters that have one.
func openModel(cfg config.Config, ck *checkpoint.Checkpoint, tok *tokenizer.Tokenizer, engine *compute.Engine,
	twin bool) (Model, error) {
	if cfg.Has(section.Fitted) {
		a := model.NewAligned(cfg, engine)
		_, err := ck.Restore(a.State())
		return fitted{a}, err
	}
	open := train.OpenModel
	if twin {
		open = train.OpenMomentum
	}
	p, err := open(cfg, ck, tok, engine)
	return towers{p}, err
}

// towers is a model of towers or heads as a Model.
type towers struct{ *model.Model }

func (t towers) Image() Encoder { return t.Model.Image() }
func (t towers) Text() Encoder  { return t.Model.Text() }

// Matcher implements Model.
func (t towers) Matcher() tasks.Matcher {
	if m := t.Model.Matcher(); m != nil {
		return m
	}
	return nil
}

// Interaction is what compares tokens, nil of a model that compares features.
func (t towers) Interaction() tasks.Interaction {
	if x := t.Model.Interaction(); x != nil {
		return x
	}
	return nil
}

// PairScore implements Model. That tokens are compared, and no features, is an *ArgumentError: a choice of what to do
// with the model.
func (t towers) PairScore() (scoring.Score, error) {
	s, err := t.Model.PairScore()
	if errors.Is(err, model.ErrNoFeatures) {
		err = &console.ArgumentError{Err: err}
	}
	return s, err
}

// ModelOf is a model of towers or heads as a Model.
func ModelOf(p *model.Model) Model { return towers{p} }

// TowersOf returns the towers or heads of a model; ok is false for a map in closed form.
func TowersOf(m Model) (p *model.Model, ok bool) {
	t, ok := m.(towers)
	return t.Model, ok
}

// fitted is a map in closed form as a Model.
type fitted struct{ *model.Aligned }

func (f fitted) Image() Encoder                   { return f.Aligned.Image() }
func (f fitted) Text() Encoder                    { return f.Aligned.Text() }
func (f fitted) Matcher() tasks.Matcher           { return nil }
func (f fitted) Metric() (*scoring.Metric, error) { return nil, nil }

// fitsFiles compares the widths of a fitted map with those of the files of a configuration.
func fitsFiles(m Model, cfg config.Config) error {
	p, err := source.OpenPairs(cfg.Source())
	if err != nil {
		return err
	}
	defer p.Close()
	var errs config.Errors
	for _, side := range []struct {
		key  string
		want int
		m    *features.Matrix
	}{{"image", m.Image().Width(), p.Images()}, {"text", m.Text().Width(), p.Texts()}} {
		if have := side.m.Width(); have != side.want {
			errs = append(errs, &config.Error{Path: "data.pairs." + side.key, Value: side.m.Path(),
				Msg:  fmt.Sprintf("has rows of %d numbers, and the checkpoint is a map of rows of %d", have, side.want),
				Hint: "name features of the encoder that it was fitted to"})
		}
	}
	return errs.OrNil()
}
