package model

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/state"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Param is one parameter.
type Param struct {
	Name  string // unique path such as image/blocks/03/attn/qkv/weight
	Shape tensor.Shape
	encoders.Traits

	init   encoders.Init
	offset int       // in the flat buffers
	mirror int       // in the momentum buffer
	own    []float32 // its values where they lie in no flat buffer: locked ones, and those of a source
	// own as products read it, in inference: nil until a computation asks for it.
	packs *exec.Packs // packed
}

// Len returns the number of elements.
func (p *Param) Len() int { return p.Shape.TotalSize() }

// Params owns the parameters of a model in flat buffers: all values one after
// another, in the order of their names, and likewise gradients and momentum
// momentum copies. So an update, a norm or an exchange is one pass over one slice. Locked parameters
// are in none of them.
type Params struct {
	seed     uint64
	averaged bool // parameters that may have a momentum copy have one
	list     []*Param
	byName   map[string]*Param
	sealed   bool
	source   Source // of stored values, for inference; nil: for training
	start    Source // of values that training starts from; nil: none

	values, grads, momentum []float32
	placed                  *placement   // on a device, nil: on the host alone
	held                    deviceMemory // there
}

// NewParams returns an empty store for training. With momentum copies, parameters whose traits say
// so have a momentum copy.
func NewParams(seed uint64, momentum bool) *Params {
	return &Params{seed: seed, averaged: momentum, byName: map[string]*Param{}}
}

// Source gives stored parameters, such as those of a checkpoint.
type Source interface {
	// Has says whether there is a parameter of a name.
	Has(name string) bool
	// Read copies the values of the parameter of a name and shape to dst. Another shape is
	// an error.
	Read(name string, shape []int, dst []float32) error
}

// readParams returns an empty store for inference: it takes the memory of the parameters
// that a computation asks for, and reads them. There are no gradients and no momentum copies.
func readParams(source Source) *Params {
	return &Params{byName: map[string]*Param{}, source: source}
}

// load reads the parameters that were asked for since the last call. Where one cannot be
// read they are as if they had not been asked for, so that what does not need them works.
func (p *Params) load() error {
	for _, q := range p.list {
		if q.own != nil {
			continue
		}
		own := make([]float32, q.Len())
		if err := p.source.Read(q.Name, q.Shape, own); err != nil {
			p.list = slices.DeleteFunc(p.list, func(q *Param) bool {
				if q.own == nil {
					delete(p.byName, q.Name)
				}
				return q.own == nil
			})
			return err
		}
		q.own = own
	}
	return nil
}

// stored returns a parameter of a store that no computation needs to have asked for; false where
// there is none of this name.
func (p *Params) stored(name string, shape ...int) (*Param, bool, error) {
	if q, ok := p.byName[name]; ok || p.source == nil || !p.source.Has(name) {
		return q, ok, nil
	}
	q := &Param{Name: name, Shape: slices.Clone(shape)}
	p.byName[name], p.list = q, append(p.list, q)
	return q, true, p.load()
}

// seal fixes the set of parameters, allocates the buffers and initialises them.
// Every parameter draws from a stream of its own name, so adding one changes no
// other. Those that start has are read from there. Those of the momentum encoder start as copies.
func (p *Params) seal() error {
	if p.sealed {
		return nil
	}
	p.allocate()
	err := p.initialize()
	p.CopyToMomentum()
	return err
}

// allocate fixes the set of parameters and takes the memory of their values, gradients
// and momentum copies.
func (p *Params) allocate() {
	p.sealed = true
	slices.SortFunc(p.list, func(a, b *Param) int { return strings.Compare(a.Name, b.Name) })
	n, m := 0, 0
	for _, q := range p.list {
		if q.Locked {
			q.own = make([]float32, q.Len())
			continue
		}
		q.offset, q.mirror = n, m
		n += q.Len()
		if q.Momentum {
			m += q.Len()
		}
	}
	p.values, p.grads, p.momentum = memory.Floats(n), memory.Floats(n), memory.Floats(m)
}

// bytes returns the memory of the values of the parameters asked for so far.
func (p *Params) bytes() (n int64) {
	for _, q := range p.list {
		n += 4 * int64(q.Len())
	}
	return n
}

// initialize fills all values, several parameters at a time: drawing hundreds of
// millions of normal numbers takes seconds. Large ones come first, so that a table of tokens
// is not begun when everything else is done.
func (p *Params) initialize() error {
	order := slices.Clone(p.list)
	slices.SortStableFunc(order, func(a, b *Param) int { return b.Len() - a.Len() })
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(order))
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(order)); i = next.Add(1) - 1 {
				errs[i] = p.Begin(order[i], p.Value(order[i]))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Begin sets dst, of the length of a parameter, to the values that training starts from: those of Options.Start, where
// it has any, else random ones.
func (p *Params) Begin(q *Param, dst []float32) error {
	if p.start != nil && !q.Given && p.start.Has(q.Name) {
		return p.start.Read(q.Name, q.Shape, dst)
	}
	q.init(rng.New(p.seed, rng.Init+"/"+q.Name, 0), dst)
	return nil
}

// CopyToMomentum sets every momentum copy to its parameter.
func (p *Params) CopyToMomentum() {
	for _, q := range p.list {
		if q.Momentum {
			copy(p.MomentumValue(q), p.Value(q))
		}
	}
}

// List returns the parameters in the order of the flat buffers.
func (p *Params) List() []*Param { return p.list }

// Names returns the names of the parameters in that order.
func (p *Params) Names() []string {
	names := make([]string, len(p.list))
	for i, q := range p.list {
		names[i] = q.Name
	}
	return names
}

// Get returns the parameter with a name.
func (p *Params) Get(name string) (*Param, bool) {
	q, ok := p.byName[name]
	return q, ok
}

// Values returns the flat buffer of all values but those of locked parameters.
func (p *Params) Values() []float32 {
	p.placed.host(ofValues, 0, len(p.values))
	return p.values
}

// Grads returns the flat buffer of all gradients, which a training step overwrites: until it is done they may hold
// anything else.
func (p *Params) Grads() []float32 {
	p.placed.host(ofGrads, 0, len(p.grads))
	return p.grads
}

// Value returns the values of one parameter.
func (p *Params) Value(q *Param) []float32 {
	if q.own != nil {
		return q.own
	}
	p.placed.host(ofValues, q.offset, q.offset+q.Len())
	return p.values[q.offset:][:q.Len():q.Len()]
}

// Grad returns the gradient of one parameter, nil of a locked one.
func (p *Params) Grad(q *Param) []float32 {
	if q.Locked {
		return nil
	}
	p.placed.host(ofGrads, q.offset, q.offset+q.Len())
	return p.grads[q.offset:][:q.Len():q.Len()]
}

// MomentumValue returns the values of a parameter's momentum copy.
func (p *Params) MomentumValue(q *Param) []float32 {
	p.placed.host(ofMomentum, q.mirror, q.mirror+q.Len())
	return p.momentum[q.mirror:][:q.Len():q.Len()]
}

// Offset returns where a parameter that is not locked starts in the flat buffers.
func (p *Params) Offset(q *Param) int { return q.offset }

// Count returns the number of values, momentum copies not counted.
func (p *Params) Count() (n int) {
	for _, q := range p.list {
		n += q.Len()
	}
	return n
}

// MomentumRuns calls f on each contiguous run of parameters with momentum copies: where the run begins
// in Values, and its momentum copies. Few long runs, so that an update is one pass.
func (p *Params) MomentumRuns(f func(offset int, copy []float32)) {
	p.placed.host(ofMomentum, 0, len(p.momentum))
	for i := 0; i < len(p.list); {
		if !p.list[i].Momentum {
			i++
			continue
		}
		j, n := i, 0
		for ; j < len(p.list) && p.list[j].Momentum; j++ {
			n += p.list[j].Len()
		}
		f(p.list[i].offset, p.momentum[p.list[i].mirror:][:n])
		i = j
	}
}

// binding is the parameters of one computation under construction.
type binding struct {
	params   *Params
	graph    *gorgonia.ExprGraph
	momentum bool
	online   *binding // of momentum: the parameters themselves
	prefix   string   // of the nodes' names
	nodes    map[string]*gorgonia.Node
}

// bind starts handing out nodes of g. With momentum, momentum copies are handed out instead
// of the parameters themselves.
func (p *Params) bind(g *gorgonia.ExprGraph, momentum bool) *binding {
	return &binding{params: p, graph: g, momentum: momentum, nodes: map[string]*gorgonia.Node{}}
}

var _ encoders.Weights = (*binding)(nil)

// Param implements encoders.Weights.
func (b *binding) Param(name string, t encoders.Traits, init encoders.Init, shape ...int) *gorgonia.Node {
	if n := b.nodes[name]; n != nil {
		if !n.Shape().Eq(tensor.Shape(shape)) && len(shape) > 0 {
			panic(misnamed(name, "is asked for with shapes %v and %v: two towers or heads have one name", n.Shape(),
				shape))
		}
		return n
	}
	q := b.params.byName[name]
	switch {
	case q == nil && b.params.sealed:
		panic(misnamed(name, "was asked for after the first step was built, which had none of this name"))
	case q == nil:
		t.Frozen, t.Momentum = t.Frozen || t.Locked, t.Momentum && b.params.averaged && !t.Locked
		q = &Param{Name: name, Shape: slices.Clone(shape), Traits: t, init: init}
		b.params.byName[name] = q
		b.params.list = append(b.params.list, q)
	case !slices.Equal(q.Shape, tensor.Shape(shape)):
		panic(misnamed(name, "is asked for with shapes %v and %v: two towers or heads have one name", q.Shape, shape))
	}
	if b.momentum && q.Locked {
		return b.online.Param(name, t, init, shape...)
	}
	label := b.prefix + name
	if b.momentum {
		if !q.Momentum {
			panic(misnamed(name, "has no copy in the momentum encoder: its traits say so"))
		}
		label = "momentum/" + name
	}
	var n *gorgonia.Node
	if len(shape) == 0 {
		n = gorgonia.NewScalar(b.graph, tensor.Float32, gorgonia.WithName(label))
	} else {
		n = gorgonia.NewTensor(b.graph, tensor.Float32, len(shape), gorgonia.WithShape(shape...),
			gorgonia.WithName(label))
	}
	b.nodes[name] = n
	return n
}

// misnamed is what a parameter of a name cannot be, as op.Catch turns it into an error.
func misnamed(name, format string, args ...any) *op.BuildError {
	return &op.BuildError{Op: "parameter " + name, Err: fmt.Errorf(format, args...)}
}

// each calls f with every node handed out and the memory to bind it to, in the
// order of the names.
func (b *binding) each(f func(q *Param, n *gorgonia.Node, mem []float32)) {
	for _, q := range b.params.list {
		n := b.nodes[q.Name]
		if n == nil {
			continue
		}
		if b.momentum {
			f(q, n, b.params.MomentumValue(q))
		} else {
			f(q, n, b.params.Value(q))
		}
	}
}

// State returns the parts of a checkpoint that hold the parameters: "model", all of them,
// and "momentum", their momentum copies, where there are any.
func (p *Params) State() []state.Part {
	parts := []state.Part{paramsPart{p}}
	for _, q := range p.list {
		if q.Momentum {
			return append(parts, momentumPart{p})
		}
	}
	return parts
}

// paramsPart is every parameter under its name. Another set of names or shapes is another
// architecture.
type paramsPart struct{ p *Params }

var (
	_ state.Exact    = paramsPart{}
	_ state.Preparer = paramsPart{}
	_ state.Restorer = paramsPart{}
	_ state.Preparer = momentumPart{}
)

// PrepareSave implements state.Preparer: values on a device come to the host, or there is nothing to save.
func (x paramsPart) PrepareSave() error { return x.p.placed.fetch(ofValues) }

// Restored implements state.Restorer: the device takes what was read.
func (x paramsPart) Restored() error {
	x.p.changed()
	return nil
}

func (paramsPart) StateName() string { return "model" }
func (paramsPart) StateVersion() int { return 1 }
func (paramsPart) Counters() any     { return nil }
func (paramsPart) ExactTensors()     {}

func (x paramsPart) Tensors() (list []state.Tensor) {
	for _, q := range x.p.list {
		list = append(list, state.Tensor{Name: q.Name, Shape: q.Shape, Data: x.p.Value(q)})
	}
	return list
}

// momentumPart is the momentum copy of every parameter that has one, under its name.
type momentumPart struct{ p *Params }

func (momentumPart) StateName() string { return "momentum" }
func (momentumPart) StateVersion() int { return 1 }
func (momentumPart) Counters() any     { return nil }

// PrepareSave implements state.Preparer.
func (x momentumPart) PrepareSave() error { return x.p.placed.fetch(ofMomentum) }

func (x momentumPart) Tensors() (list []state.Tensor) {
	for _, q := range x.p.list {
		if q.Momentum {
			list = append(list, state.Tensor{Name: q.Name, Shape: q.Shape, Data: x.p.MomentumValue(q)})
		}
	}
	return list
}
