package model

import (
	"context"
	"errors"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"gorgonia.org/gorgonia"
)

// errNoInteraction says that a model compares features.
var errNoInteraction = errors.New("model: this model compares features: set model.interaction.kind in training to compare tokens")

// ErrNoFeatures says that a model compares tokens.
var ErrNoFeatures = errors.New("model: this model compares images and texts by all their tokens (model.interaction), so there is no " +
	"one vector of an image or a text to store, search or draw: use trainer eval --task retrieval, or a model that was trained with " +
	`model.interaction.kind = ""`)

// Interaction scores images and texts by their tokens.
type Interaction struct {
	m      *Model
	scores program[blockOfPairs, *tokenScorer]
}

// blockOfPairs is numbers of images and of texts.
type blockOfPairs struct{ images, texts int }

// tokenScorer is the compiled interaction of n images with m texts.
type tokenScorer struct {
	computation
	images, texts tokenInputs
	scores        *gorgonia.Node // (n, m)
}

// tokenInputs are the inputs of one side.
type tokenInputs struct{ rows, lengths *gorgonia.Node }

func newTokenInteraction(m *Model) *Interaction {
	x := &Interaction{m: m}
	x.scores = program[blockOfPairs, *tokenScorer]{m: m, build: x.build, forward: true}
	m.programs = append(m.programs, &x.scores)
	return x
}

// Name is the kind of the interaction.
func (x *Interaction) Name() string { return x.m.cfg.Model.Interaction.Kind }

// Scores returns the scores (n, m) of n images with m texts by their tokens, as EncodeTokens
// gives them, with their numbers (n) and (m). Rows without tokens have the score 0. A computation is kept for each
// pair of numbers: call it with few different ones. The next call overwrites the result. It
// ends early with the error of ctx.
func (x *Interaction) Scores(
	ctx context.Context, images []float32, imageLengths []int32, texts []float32, textLengths []int32,
) ([]float32, error) {
	c, err := x.scores.get(blockOfPairs{len(imageLengths), len(textLengths)})
	if err != nil {
		return nil, err
	}
	if err := c.runWith(ctx, given{c.images.rows, images}, given{c.images.lengths, imageLengths},
		given{c.texts.rows, texts}, given{c.texts.lengths, textLengths}); err != nil {
		return nil, err
	}
	s, err := c.machine.Value(c.scores)
	return s.F32, err
}

// build adds the interaction of some images with some texts to a computation.
func (x *Interaction) build(of blockOfPairs, n *net) (*tokenScorer, gorgonia.Nodes, error) {
	image, err := x.m.image.sequence()
	if err != nil {
		return nil, nil, err
	}
	text, err := x.m.text.sequence()
	if err != nil {
		return nil, nil, err
	}
	c := &tokenScorer{}
	local := func(e *Encoder, q encoders.Sequence, rows int, in *tokenInputs) encoders.Local {
		in.rows = n.inputs.Unbound(e.side.name+" tokens", batch.Float32, rows*q.Len, e.Dim())
		in.lengths = n.inputs.Unbound(e.side.name+" lengths", batch.Int32, rows)
		q.Lengths = in.lengths
		return q.Local(e.side.head.(encoders.TokenHead), in.rows, x.m.cfg.Model.Interaction.ClassTokens)
	}
	c.scores = x.m.design.interaction.Scores(&encoders.Context{}, n.root(),
		local(x.m.image, image, of.images, &c.images), local(x.m.text, text, of.texts, &c.texts))
	return c, gorgonia.Nodes{c.scores}, nil
}
