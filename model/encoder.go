package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Encoder is one side of a model for inference. Rows of a batch pass through it a few at a time, texts in the order of
// their length, so that little is computed for padding; see cutter. What a row gives does not depend on the rows
// beside it but for rounding.
type Encoder struct {
	m         *Model
	side      *side
	encodings program[shape, *encoding]
	cut       cutter
	out       [askings]encoded
}

// mostKept bounds the computations that an encoder keeps. They take little memory but the room that they share.
const mostKept = 256

// newEncoder returns the encoder of a side of m.
func newEncoder(m *Model, s *side) *Encoder {
	e := &Encoder{m: m, side: s}
	e.encodings = program[shape, *encoding]{m: m, build: e.build, forward: true, shared: true, most: mostKept}
	m.programs = append(m.programs, &e.encodings)
	return e
}

// asking says what is read of a tower, and so what is computed.
type asking int

const (
	readStates   asking = iota // states of all tokens, and features
	readFeatures               // features alone
	readClasses                // class tokens alone, before the head
	readTokens                 // all tokens in the shared space
	askings
)

// encoded is what a batch gave by one of them, in memory that the next call takes again.
type encoded struct {
	states   []float32 // (n*Len, D)
	classes  []float32 // (n*m, D)
	features []float32 // (n, C), or of tokens (n*Len, C) before their norm
	lengths  []int32   // (n), of tokens
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
// and features (n, C). States of padding mean nothing. The next call overwrites both. It ends early with the
// error of ctx.
func (e *Encoder) Encode(ctx context.Context, b *batch.Batch) (states, features []float32, err error) {
	x, err := e.run(ctx, b, readStates)
	return x.states, x.features, err
}

// Features is Encode for callers that read no states: features (n, C). The last block of a tower then computes
// nothing but what stands for a row.
func (e *Encoder) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := e.run(ctx, b, readFeatures)
	return x.features, err
}

// EncodeClasses runs the tower alone: all m class tokens of each row of b one after the
// other, (n, m*D). The same holds for it as for Encode.
func (e *Encoder) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := e.run(ctx, b, readClasses)
	return x.classes, err
}

// EncodeTokens runs the tower over the rows of b without dropout and maps its tokens into the
// shared space, before their norm: (n*Len, C), with how many of each row there are, (n). Interaction
// takes them. The same holds for it as for Encode.
func (e *Encoder) EncodeTokens(ctx context.Context, b *batch.Batch) (tokens []float32, lengths []int32, err error) {
	x, err := e.run(ctx, b, readTokens)
	return x.features, x.lengths, err
}

// Forget frees the memory of computations, which the next call compiles again.
func (e *Encoder) Forget() {
	_ = e.encodings.forget() // what a device does not take back now, it does in the end
	e.out = [askings]encoded{}
}

// Profile returns the time that ops took so far, of all computations that are kept, and the bytes that these hold.
func (e *Encoder) Profile() (list []exec.Profile, bytes int64) {
	for _, x := range e.encodings.kept {
		if p := x.machine.Profile(); p.Runs > 0 {
			list = append(list, p)
		}
	}
	return list, e.encodings.room.Bytes()
}

// ResetProfile starts the profile anew.
func (e *Encoder) ResetProfile() {
	for _, x := range e.encodings.kept {
		x.machine.ResetProfile()
	}
}

// StepByStep has a device run the ops of the computations that are kept one by one, so that the times of a profile are
// those of each, see compute.Machine.
func (e *Encoder) StepByStep(on bool) {
	for _, x := range e.encodings.kept {
		x.machine.StepByStep(on)
	}
}

// run encodes a batch, chunk by chunk.
func (e *Encoder) run(ctx context.Context, b *batch.Batch, of asking) (encoded, error) {
	if b.Rows() < 1 {
		return encoded{}, errors.New("model: a batch to encode has no rows")
	}
	for _, c := range e.Columns() {
		if got := len(b.Floats(c.Name)) + len(b.Ints(c.Name)); got != b.Rows()*c.Len() {
			return encoded{}, fmt.Errorf(
				"model: %s: got %d values, want %d rows of %d: give batches with all columns of the tower", c.Name, got,
				b.Rows(), c.Len())
		}
	}
	out := &e.out[of]
	for _, p := range e.cut.chunks(b, e.Len(), e.shortens()) {
		rows := e.cut.order[p.first : p.first+p.rows]
		x, err := e.encodings.get(shape{p.rows, p.places, of})
		if err == nil {
			err = x.fill(b, rows)
		}
		if err == nil {
			err = x.machine.Run(ctx)
		}
		if err == nil {
			err = x.store(out, b.Rows(), e.Len(), rows)
		}
		if err != nil {
			return encoded{}, err
		}
	}
	return *out, nil
}

// shape is what a computation of an encoder is compiled for.
type shape struct {
	rows   int
	places int // of a row; Len, or fewer of texts
	of     asking
}

// encoding is a compiled encoder. What it was not compiled for is nil.
type encoding struct {
	computation
	shape
	columns  []encodedColumn
	states   *gorgonia.Node // (rows*places, D)
	classes  *gorgonia.Node // (rows*m, D)
	features *gorgonia.Node // (rows, C), or of tokens (rows*places, C) before their norm
	// Of tokens: how many of each row there are, (rows), or the same for all.
	lengths  *gorgonia.Node
	full     int32
	sequence encoders.Sequence // without nodes
}

// encodedColumn is an input of a computation.
type encodedColumn struct {
	batch.Column
	node *gorgonia.Node
	ints []int32 // rows of places, of a column of ids or lengths; nil: the input is the memory of the batch
}

// shortens says whether rows may have fewer places than Len.
func (e *Encoder) shortens() bool {
	t, ok := e.side.tower.(encoders.Shorter)
	return ok && t.Shortens()
}

// build adds the tower, the head and what else is read to a computation.
func (e *Encoder) build(of shape, n *net) (*encoding, gorgonia.Nodes, error) {
	x := &encoding{shape: of}
	t := e.side.tower
	if of.places < e.Len() {
		t = t.(encoders.Shorter).Shorter(of.places)
	}
	want := encoders.Want{Tokens: of.of == readStates || of.of == readTokens, Classes: of.of != readTokens}
	q := t.Encode(&encoders.Context{}, e.scope(n), x.towerInputs(n, t), want)
	switch of.of {
	case readClasses:
		x.classes = q.Classes
	case readTokens:
		x.features = e.tokens(x, n.root().In(e.side.proj), q)
	default:
		x.features = e.side.head.Project(&encoders.Context{}, n.root().In(e.side.proj), q.Classes)
		if of.of == readStates {
			x.states = q.Tokens
		}
	}
	return x, present(x.classes, x.features, x.lengths, x.states), nil
}

// tokens returns the rows of a sequence in the shared space, and notes how many of them there are.
func (e *Encoder) tokens(x *encoding, s encoders.Scope, q encoders.Sequence) *gorgonia.Node {
	head, ok := e.side.head.(encoders.TokenHead)
	if !ok {
		panic(&op.BuildError{Op: "tokens", Err: errNoInteraction})
	}
	rows, lengths := head.Raw(s, q.Tokens), q.Lengths
	x.sequence = q
	x.sequence.Tokens, x.sequence.Lengths = nil, nil // of this computation
	if lengths != nil {
		x.lengths = layout.AddInt(lengths, 0)
	} else {
		x.full = int32(q.Len)
	}
	return rows
}

// sequence says how the tokens of a side lie, without nodes.
func (e *Encoder) sequence() (encoders.Sequence, error) {
	x, err := e.encodings.get(shape{1, e.Len(), readTokens})
	if err != nil {
		return encoders.Sequence{}, err
	}
	return x.sequence, nil
}

// scope is that of the tower in a computation, as it is tuned.
func (e *Encoder) scope(n *net) encoders.Scope {
	s := n.root().In(e.side.name)
	if e.side.frozen {
		return s
	}
	return tuned(e.m.cfg.Model, s, &encoders.Context{})
}

// encode runs the tower over rows of a batch in a computation of another part of the model.
func (e *Encoder) encode(n *net, rows int, tap encoders.Tap, want encoders.Want) encoders.Sequence {
	t := e.side.tower
	return t.Encode(&encoders.Context{}, e.scope(n).Tapped(tap), n.towerInputs(t, rows, e.side.column), want)
}

// project runs the head over class tokens in a computation of another part of the model.
func (e *Encoder) project(n *net, classes *gorgonia.Node) *gorgonia.Node {
	return e.side.head.Project(&encoders.Context{}, n.root().In(e.side.proj), classes)
}

// towerInputs are those of a tower, of rows that are chosen for each run.
func (x *encoding) towerInputs(n *net, t encoders.Tower) encoders.Inputs {
	in := encoders.Inputs{}
	for _, c := range t.Columns() {
		shape := append([]int{x.rows}, c.Shape...)
		k := encodedColumn{Column: c}
		if c.Type == batch.Int32 {
			k.ints = make([]int32, x.rows*c.Len())
			shape = []int{len(k.ints)}
		}
		k.node = n.inputs.Unbound(c.Name, c.Type, shape...)
		in[c.Name] = k.node
		x.columns = append(x.columns, k)
	}
	return in
}

// fill gives a computation rows of a batch, which lie together where a column is not copied.
func (x *encoding) fill(b *batch.Batch, rows []int) error {
	for _, c := range x.columns {
		n := c.Len()
		var values any = c.ints
		if c.ints == nil {
			values = b.Floats(c.Name)[rows[0]*n : (rows[0]+len(rows))*n]
		}
		for i, r := range rows[:len(c.ints)/n] {
			copy(c.ints[i*n:(i+1)*n], b.Row(r).Ints(c.Name))
		}
		if err := x.machine.SetInput(c.node, values); err != nil {
			return err
		}
	}
	return nil
}

// store takes what a run gave to the rows of n that it was of, of most places each.
func (x *encoding) store(out *encoded, n, most int, rows []int) error {
	read, featurePlaces := outputs{machine: x.machine}, 0
	if x.of == readTokens {
		featurePlaces = x.places
	}
	for _, v := range []struct {
		of     *gorgonia.Node
		to     *[]float32
		places int // 0: values of a row that are no tokens
	}{{x.states, &out.states, x.places}, {x.classes, &out.classes, 0}, {x.features, &out.features, featurePlaces}} {
		if v.of == nil {
			continue
		}
		values := read.floats(v.of)
		size := len(values) / len(rows) // of a row here
		whole := size                   // and in the result
		if v.places > 0 {
			whole = size / v.places * most
		}
		*v.to = sized(*v.to, n*whole)
		for i, r := range rows {
			to := (*v.to)[r*whole : (r+1)*whole]
			clear(to[copy(to, values[i*size:(i+1)*size]):])
		}
	}
	if x.of == readTokens {
		out.lengths = sized(out.lengths, n)
		own := read.of(x.lengths).I32
		for i, r := range rows {
			out.lengths[r] = x.full
			if own != nil {
				out.lengths[r] = own[i]
			}
		}
	}
	return read.err
}

// sized returns x with n values, in new memory where it has no room.
func sized[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
