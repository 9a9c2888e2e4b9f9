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
	nets map[int]*encoding // by the number of rows
}

// encoding is a compiled computation of a number of rows.
type encoding struct {
	machine  *exec.Machine
	inputs   *feed.Inputs
	states   *gorgonia.Node // (n*Len, D)
	features *gorgonia.Node // (n, C)
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
	n := b.Rows()
	if n < 1 {
		return nil, nil, errors.New("model: a batch to encode has no rows")
	}
	x := e.nets[n]
	if x == nil {
		if x, err = e.build(n); err != nil {
			return nil, nil, err
		}
		if e.nets == nil {
			e.nets = map[int]*encoding{}
		}
		e.nets[n] = x
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, nil, err
	}
	s, err := x.machine.Value(x.states)
	if err != nil {
		return nil, nil, err
	}
	f, err := x.machine.Value(x.features)
	return s.F32, f.F32, err
}

// build compiles the computation of n rows.
func (e *Encoder) build(n int) (x *encoding, err error) {
	defer op.Catch(&err)
	t, b := e.side.tower, newNet(e.p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: e.p.design.teacher})
	x = &encoding{inputs: b.inputs}
	q := t.Encode(&encoders.Context{}, on.In(e.side.name), b.towerInputs(t, n, nil), encoders.Want{Tokens: true, Classes: true})
	x.states = q.Tokens
	x.features = e.side.head.Project(&encoders.Context{}, on.In(e.side.proj), q.Classes)
	x.machine, err = b.compileEval(exec.Config{Engine: e.p.engine}, x.states, x.features)
	return x, err
}
