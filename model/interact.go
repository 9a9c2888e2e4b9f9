package model

import (
	"context"
	"errors"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// interacting is the compiled interaction of n images with m texts.
type interacting struct {
	machine       *exec.Machine
	images, texts tokenInputs
	scores        *gorgonia.Node // (n, m)
}

// tokenInputs are the inputs of one side.
type tokenInputs struct{ rows, lengths *gorgonia.Node }

// errNoInteraction says that a model compares features.
var errNoInteraction = errors.New("model: this model compares features: set model.interaction.kind in training to compare tokens")

// ErrNoFeatures says that a model compares tokens.
var ErrNoFeatures = errors.New("model: this model compares images and texts by all their tokens (model.interaction), so there is no one vector of an image or a text to store, search or draw: use trainer eval --task retrieval, or a model that was trained with model.interaction.kind = \"\"")

// InteractionName is the kind of the interaction, empty of a model that compares features.
func (p *Pairs) InteractionName() string { return p.cfg.Model.Interaction.Kind }

// EncodeTokens runs the tower over the rows of b without dropout and maps its tokens into the
// shared space, before their norm: (n*Len, C), with how many of each row there are, (n). Interact
// takes them. The same holds for it as for Encode.
func (e *Encoder) EncodeTokens(ctx context.Context, b *batch.Batch) (tokens []float32, lengths []int32, err error) {
	x, err := e.run(ctx, b, readTokens)
	return x.features, x.lengths, err
}

// tokens adds the rows of a sequence in the shared space to an encoding.
func (e *Encoder) tokens(x *encoding, s encoders.Scope, q encoders.Sequence) gorgonia.Nodes {
	head, ok := e.side.head.(encoders.TokenHead)
	if !ok {
		panic(&op.BuildError{Op: "tokens", Err: errNoInteraction})
	}
	x.features, x.sequence = head.Raw(s, q.Tokens), q
	x.sequence.Tokens, x.sequence.Lengths = nil, nil // of this computation
	if q.Lengths != nil {
		x.lengths = layout.AddInt(q.Lengths, 0)
		return gorgonia.Nodes{x.features, x.lengths}
	}
	x.full = int32(q.Len)
	return gorgonia.Nodes{x.features}
}

// sequence says how the tokens of a side lie, without nodes.
func (e *Encoder) sequence() (encoders.Sequence, error) {
	x, err := e.encoding(shape{1, e.Len(), readTokens})
	if err != nil {
		return encoders.Sequence{}, err
	}
	return x.sequence, nil
}

// Interact returns the scores (n, m) of n images with m texts by their tokens, as EncodeTokens
// gives them, with their numbers (n) and (m). Rows without tokens have the score 0. A computation is kept for each
// pair of numbers: call it with few different ones. The next call overwrites the result. It
// ends early with the error of ctx.
func (p *Pairs) Interact(ctx context.Context, images []float32, imageLengths []int32, texts []float32, textLengths []int32) ([]float32, error) {
	x, err := p.interacting(len(imageLengths), len(textLengths))
	if err != nil {
		return nil, err
	}
	for _, in := range []struct {
		n *gorgonia.Node
		v any
	}{{x.images.rows, images}, {x.images.lengths, imageLengths}, {x.texts.rows, texts}, {x.texts.lengths, textLengths}} {
		if err := x.machine.SetInput(in.n, in.v); err != nil {
			return nil, err
		}
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	s, err := x.machine.Value(x.scores)
	return s.F32, err
}

// interacting returns the computation of n images with m texts, built when it is first asked
// for.
func (p *Pairs) interacting(n, m int) (x *interacting, err error) {
	if x := p.interactions[[2]int{n, m}]; x != nil {
		return x, nil
	}
	if p.design.interaction == nil {
		return nil, errNoInteraction
	}
	image, err := p.image.sequence()
	if err != nil {
		return nil, err
	}
	text, err := p.text.sequence()
	if err != nil {
		return nil, err
	}
	defer op.Catch(&err)
	b := newNet(p.params)
	x = &interacting{}
	local := func(e *Encoder, q encoders.Sequence, rows int, in *tokenInputs) encoders.Local {
		in.rows = b.inputs.Unbound(e.side.name+" tokens", batch.Float32, rows*q.Len, e.Dim())
		in.lengths = b.inputs.Unbound(e.side.name+" lengths", batch.Int32, rows)
		q.Lengths = in.lengths
		return q.Local(e.side.head.(encoders.TokenHead), in.rows, p.cfg.Model.Interaction.ClassTokens)
	}
	x.scores = p.design.interaction.Scores(&encoders.Context{}, encoders.NewScope(b.params),
		local(p.image, image, n, &x.images), local(p.text, text, m, &x.texts))
	if x.machine, err = b.compileEval(exec.Config{Engine: p.engine, Forward: true}, x.scores); err != nil {
		return nil, err
	}
	if p.interactions == nil {
		p.interactions = map[[2]int]*interacting{}
	}
	p.interactions[[2]int{n, m}] = x
	return x, nil
}
