package model

import (
	"context"
	"errors"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Encoder is one side of a model for inference.
type Encoder struct {
	p    *Pairs
	side *side
	nets map[shape]*encoding
}

// shape is what a computation is compiled for.
type shape struct {
	rows    int
	classes bool // class tokens alone, before the head
	tokens  bool // all tokens in the shared space alone
}

// encoding is a compiled computation. What it was not compiled for is nil.
type encoding struct {
	machine  *exec.Machine
	inputs   *feed.Inputs
	states   *gorgonia.Node // (n*Len, D)
	classes  *gorgonia.Node // (n*m, D)
	features *gorgonia.Node // (n, C), or of tokens (n*Len, C) before their norm
	// Of tokens: how many of each row there are, (n), or the same for all.
	lengths  *gorgonia.Node
	full     []int32
	sequence encoders.Sequence // without nodes
}

// Columns are the columns of a batch that Encode reads.
func (e *Encoder) Columns() []batch.Column { return e.side.tower.Columns() }

// Len returns the tokens of a row: T of images, L of texts.
func (e *Encoder) Len() int {
	n, _ := e.side.tower.Shape()
	return n
}

// Width returns D, the width of a token.
func (e *Encoder) Width() int {
	_, d := e.side.tower.Shape()
	return d
}

// Dim returns C, the channels of the shared space.
func (e *Encoder) Dim() int { return e.side.head.Dimension() }

// Encode runs the tower and the head over the rows of b without dropout. It returns the
// token states (n*Len, D), the first class token and the patches or words of each row,
// and features (n, C). The next call with as many rows overwrites both. A computation is
// kept for every number of rows: call it with few different ones. It ends early with the
// error of ctx.
func (e *Encoder) Encode(ctx context.Context, b *batch.Batch) (states, features []float32, err error) {
	x, err := e.run(ctx, b, shape{rows: b.Rows()})
	if err != nil {
		return nil, nil, err
	}
	s, err := x.machine.Value(x.states)
	if err != nil {
		return nil, nil, err
	}
	f, err := x.machine.Value(x.features)
	return s.F32, f.F32, err
}

// EncodeClasses runs the tower alone: all m class tokens of each row of b one after the
// other, (n, m*D). The same holds for it as for Encode.
func (e *Encoder) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := e.run(ctx, b, shape{rows: b.Rows(), classes: true})
	if err != nil {
		return nil, err
	}
	c, err := x.machine.Value(x.classes)
	return c.F32, err
}

// Forget frees the memory of computations, which the next call compiles again.
func (e *Encoder) Forget() { e.nets = nil }

// encoding returns a computation, which it compiles when it is first asked for.
func (e *Encoder) encoding(of shape) (x *encoding, err error) {
	if x = e.nets[of]; x != nil {
		return x, nil
	}
	if x, err = e.build(of); err != nil {
		return nil, err
	}
	if e.nets == nil {
		e.nets = map[shape]*encoding{}
	}
	e.nets[of] = x
	return x, nil
}

// run runs a computation over a batch.
func (e *Encoder) run(ctx context.Context, b *batch.Batch, of shape) (x *encoding, err error) {
	if of.rows < 1 {
		return nil, errors.New("model: a batch to encode has no rows")
	}
	if x, err = e.encoding(of); err != nil {
		return nil, err
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	return x, x.machine.Run(ctx)
}

// build compiles a computation.
func (e *Encoder) build(of shape) (x *encoding, err error) {
	defer op.Catch(&err)
	t, b := e.side.tower, newNet(e.p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: e.p.design.teacher})
	x = &encoding{inputs: b.inputs}
	q := t.Encode(&encoders.Context{}, e.scope(on.In(e.side.name)), b.towerInputs(t, of.rows, nil), encoders.Want{Tokens: !of.classes, Classes: !of.tokens})
	if of.classes {
		x.classes = q.Classes
		x.machine, err = b.compileEval(exec.Config{Engine: e.p.engine}, x.classes)
		return x, err
	}
	if of.tokens {
		x.machine, err = b.compileEval(exec.Config{Engine: e.p.engine}, e.tokens(x, on.In(e.side.proj), q, of.rows)...)
		return x, err
	}
	x.states = q.Tokens
	x.features = e.side.head.Project(&encoders.Context{}, on.In(e.side.proj), q.Classes)
	x.machine, err = b.compileEval(exec.Config{Engine: e.p.engine}, x.states, x.features)
	return x, err
}

// scope is that of the tower, as it is tuned.
func (e *Encoder) scope(s encoders.Scope) encoders.Scope {
	if e.side.frozen {
		return s
	}
	return tuned(e.p.cfg.Model, s, &encoders.Context{})
}
