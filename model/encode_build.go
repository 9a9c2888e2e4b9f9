package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// shape is what a computation is compiled for.
type shape struct {
	rows   int
	places int // of a row; Len, or fewer of texts
	of     asking
}

// encoding is a compiled computation. What it was not compiled for is nil.
type encoding struct {
	shape
	machine  *exec.Machine
	columns  []encodedColumn
	states   *gorgonia.Node // (rows*places, D)
	classes  *gorgonia.Node // (rows*m, D)
	features *gorgonia.Node // (rows, C), or of tokens (rows*places, C) before their norm
	// Of tokens: how many of each row there are, (rows), or the same for all.
	lengths  *gorgonia.Node
	full     int32
	sequence encoders.Sequence // without nodes
	used     int               // the run of the encoder that used it last
}

// encodedColumn is an input of a computation.
type encodedColumn struct {
	batch.Column
	node *gorgonia.Node
	ints []int32 // rows of places, of a column of ids or lengths; nil: the input is the memory of the batch
}

// encodings are the computations that are kept.
type encodings struct {
	room exec.Room
	nets map[shape]*encoding
	runs int
}

// mostKept bounds the computations that are kept. They take little memory but the room that they share.
const mostKept = 256

// shortens says whether rows may have fewer places than Len.
func (e *Encoder) shortens() bool {
	t, ok := e.side.tower.(encoders.Shorter)
	return ok && t.Shortens()
}

// encoding returns a computation, which it compiles when it is first asked for.
func (e *Encoder) encoding(of shape) (*encoding, error) {
	k := &e.kept
	k.runs++
	x := k.nets[of]
	if x == nil {
		var err error
		if x, err = e.build(of); err != nil {
			return nil, err
		}
		if old := k.add(x); old != nil {
			if err := e.p.params.held.drop(old.machine); err != nil {
				return nil, err
			}
		}
	}
	x.used = k.runs
	return x, nil
}

// add keeps a computation. It returns the one that was used least recently, which it drops, where there are too many.
func (k *encodings) add(x *encoding) (dropped *encoding) {
	if k.nets == nil {
		k.nets = map[shape]*encoding{}
	}
	if len(k.nets) >= mostKept {
		oldest := x
		for _, y := range k.nets {
			if oldest == x || y.used < oldest.used {
				oldest = y
			}
		}
		delete(k.nets, oldest.shape)
		dropped = oldest
	}
	k.nets[x.shape] = x
	return dropped
}

func (k *encodings) profile() (list []exec.Profile, bytes int64) {
	for _, x := range k.nets {
		if p := x.machine.Profile(); p.Runs > 0 {
			list = append(list, p)
		}
	}
	return list, k.room.Bytes()
}

func (k *encodings) resetProfile() {
	for _, x := range k.nets {
		x.machine.ResetProfile()
	}
}

// build compiles a computation.
func (e *Encoder) build(of shape) (x *encoding, err error) {
	defer op.Catch(&err)
	b := newNet(e.p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: e.p.design.teacher})
	x = &encoding{shape: of}
	t := e.side.tower
	if of.places < e.Len() {
		t = t.(encoders.Shorter).Shorter(of.places)
	}
	want := encoders.Want{Tokens: of.of == readStates || of.of == readTokens, Classes: of.of != readTokens}
	q := t.Encode(&encoders.Context{}, e.scope(on.In(e.side.name)), x.inputs(b, t), want)
	var outputs gorgonia.Nodes
	switch of.of {
	case readClasses:
		x.classes = q.Classes
		outputs = gorgonia.Nodes{x.classes}
	case readTokens:
		outputs = e.tokens(x, on.In(e.side.proj), q)
	default:
		x.features = e.side.head.Project(&encoders.Context{}, on.In(e.side.proj), q.Classes)
		outputs = gorgonia.Nodes{x.features}
		if of.of == readStates {
			x.states = q.Tokens
			outputs = append(outputs, x.states)
		}
	}
	x.machine, err = b.compileEval(exec.Config{Engine: e.p.engine, Forward: true, Room: &e.kept.room}, outputs...)
	return x, err
}

// scope is that of the tower, as it is tuned.
func (e *Encoder) scope(s encoders.Scope) encoders.Scope {
	if e.side.frozen {
		return s
	}
	return tuned(e.p.cfg.Model, s, &encoders.Context{})
}

// inputs are those of a tower.
func (x *encoding) inputs(b *net, t encoders.Tower) encoders.Inputs {
	in := encoders.Inputs{}
	for _, c := range t.Columns() {
		shape := append([]int{x.rows}, c.Shape...)
		k := encodedColumn{Column: c}
		if c.Type == batch.Int32 {
			k.ints = make([]int32, x.rows*c.Len())
			shape = []int{len(k.ints)}
		}
		k.node = b.inputs.Unbound(c.Name, c.Type, shape...)
		in[c.Name] = k.node
		x.columns = append(x.columns, k)
	}
	return in
}

// fill gives a computation rows of a batch, which lie together where a column is not copied.
func (x *encoding) fill(b *batch.Batch, rows []int) error {
	for _, c := range x.columns {
		if c.ints == nil {
			n := c.Len()
			if err := x.machine.SetInput(c.node, b.Floats(c.Name)[rows[0]*n:(rows[0]+len(rows))*n]); err != nil {
				return err
			}
			continue
		}
		n := c.Len()
		for i, r := range rows {
			copy(c.ints[i*n:(i+1)*n], b.Row(r).Ints(c.Name))
		}
		if err := x.machine.SetInput(c.node, c.ints); err != nil {
			return err
		}
	}
	return nil
}

// store takes what a run gave to the rows of n that it was of, of most places each.
func (x *encoding) store(out *encoded, n, most int, rows []int) error {
	for _, v := range []struct {
		of     *gorgonia.Node
		to     *[]float32
		places int // 0: values of a row that are no tokens
	}{{x.states, &out.states, x.places}, {x.classes, &out.classes, 0}, {x.features, &out.features, x.featurePlaces()}} {
		if v.of == nil {
			continue
		}
		a, err := x.machine.Value(v.of)
		if err != nil {
			return err
		}
		size := len(a.F32) / len(rows) // of a row here
		whole := size                  // and in the result
		if v.places > 0 {
			whole = size / v.places * most
		}
		*v.to = sized(*v.to, n*whole)
		for i, r := range rows {
			to := (*v.to)[r*whole : (r+1)*whole]
			clear(to[copy(to, a.F32[i*size:(i+1)*size]):])
		}
	}
	return x.storeLengths(out, n, rows)
}

// featurePlaces are the places of a row that have features: those of tokens, else 0.
func (x *encoding) featurePlaces() int {
	if x.of == readTokens {
		return x.places
	}
	return 0
}

// storeLengths takes how many tokens rows have.
func (x *encoding) storeLengths(out *encoded, n int, rows []int) error {
	if x.of != readTokens {
		return nil
	}
	out.lengths = sized(out.lengths, n)
	var own []int32
	if x.lengths != nil {
		a, err := x.machine.Value(x.lengths)
		if err != nil {
			return err
		}
		own = a.I32
	}
	for i, r := range rows {
		out.lengths[r] = x.full
		if own != nil {
			out.lengths[r] = own[i]
		}
	}
	return nil
}

// sized returns x with n values, in new memory where it has no room.
func sized[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
