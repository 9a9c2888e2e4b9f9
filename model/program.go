package model

import (
	"context"
	"errors"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// program is a computation for inference that is built and compiled for a key, such as a number of rows, when it is
// first asked for, and kept for the next time. G is what a build makes: a computation with its nodes and the memory of
// its inputs.
type program[K comparable, G built] struct {
	m *Model
	// build adds nodes to a graph and returns them with those whose values are read after a run.
	build   func(key K, n *net) (G, gorgonia.Nodes, error)
	forward bool // ops do without results that their backward pass alone would read
	shared  bool // all lie in one room, so that their memory is that of the largest
	most    int  // computations that are kept, those asked for last; 0: all

	kept  map[K]G
	room  exec.Room
	asked int
}

// built is a pointer to a struct around a computation.
type built interface{ base() *computation }

// get returns the computation of a key.
func (p *program[K, G]) get(key K) (x G, err error) {
	p.asked++
	x, ok := p.kept[key]
	if ok {
		x.base().asked = p.asked
		return x, nil
	}
	defer op.Catch(&err)
	n := newNet(p.m.params)
	x, outputs, err := p.build(key, n)
	if err != nil {
		return x, err
	}
	c := exec.Config{Engine: p.m.engine, Forward: p.forward}
	if p.shared {
		c.Room = &p.room
	}
	*x.base() = computation{inputs: n.inputs, asked: p.asked}
	if x.base().machine, err = n.compile(c, outputs); err != nil {
		return x, err
	}
	return x, p.keep(key, x)
}

// keep keeps a computation, and drops the one that was not asked for the longest where there are too many.
func (p *program[K, G]) keep(key K, x G) (err error) {
	if p.kept == nil {
		p.kept = map[K]G{}
	}
	if p.most > 0 && len(p.kept) >= p.most {
		oldest, at := key, p.asked
		for k, y := range p.kept {
			if y.base().asked < at {
				oldest, at = k, y.base().asked
			}
		}
		err = p.m.params.held.drop(p.kept[oldest].base().machine)
		delete(p.kept, oldest)
	}
	p.kept[key] = x
	return err
}

// forget gives the memory of all computations back. The next call compiles them again.
func (p *program[K, G]) forget() error {
	var errs []error
	for _, x := range p.kept {
		errs = append(errs, p.m.params.held.drop(x.base().machine))
	}
	p.kept = nil
	return cause.Join(append(errs, p.room.Close())...)
}

// computation is a compiled graph with its inputs.
type computation struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	asked   int // when its program was asked for it last
}

func (c *computation) base() *computation { return c }

// run computes with the columns of a batch. It ends early with the error of ctx.
func (c *computation) run(ctx context.Context, b *batch.Batch) error {
	if err := c.inputs.Fill(c.machine, &feed.Step{Batch: b}); err != nil {
		return err
	}
	return c.machine.Run(ctx)
}

// given is the values of an input that is not a column of a batch.
type given struct {
	input  *gorgonia.Node
	values any
}

// runWith computes with values of inputs. It ends early with the error of ctx.
func (c *computation) runWith(ctx context.Context, list ...given) error {
	for _, x := range list {
		if err := c.machine.SetInput(x.input, x.values); err != nil {
			return err
		}
	}
	return c.machine.Run(ctx)
}

// outputs reads the results of a computation after a run. The first error stays.
type outputs struct {
	machine *exec.Machine
	err     error
}

// of returns the values of a node, none of nil.
func (o *outputs) of(n *gorgonia.Node) (a exec.Array) {
	if n == nil || o.err != nil {
		return a
	}
	a, o.err = o.machine.Value(n)
	return a
}

// floats returns the values of a node of real numbers, nil of nil.
func (o *outputs) floats(n *gorgonia.Node) []float32 { return o.of(n).F32 }

// scalar returns the value of a scalar node.
func (o *outputs) scalar(n *gorgonia.Node) float64 {
	if o.err != nil {
		return 0
	}
	v, err := o.machine.Scalar(n)
	o.err = err
	return float64(v)
}

// net is a computation under construction with its parameters and inputs.
type net struct {
	g        *gorgonia.ExprGraph
	inputs   *feed.Inputs
	params   *binding // online
	momentum *binding // of the momentum encoder
}

// newNet starts a computation whose parameters are those of p.
func newNet(p *Params) *net {
	g := gorgonia.NewGraph()
	n := &net{g: g, inputs: feed.New(g), params: p.bind(g, false), momentum: p.bind(g, true)}
	n.momentum.online = n.params
	return n
}

// root is the scope of all parameters.
func (n *net) root() encoders.Scope { return encoders.NewScope(n.params) }

// towerInputs are the inputs of a tower from rows of a batch, whose columns names renames to
// others of the batch where it has them. Ids of a sequence come flat.
func (n *net) towerInputs(t encoders.Tower, rows int, names map[string]string) encoders.Inputs {
	in := encoders.Inputs{}
	for _, c := range t.Columns() {
		name := c.Name
		if other, ok := names[name]; ok {
			c.Name = other
		}
		if len(c.Shape) == 1 && c.Type == batch.Int32 {
			in[name] = n.inputs.Flat(c, rows)
		} else {
			in[name] = n.inputs.Column(c, rows)
		}
	}
	return in
}

// withSecond puts the second pictures of rows of a batch behind the inputs in of their first ones, of a tower of
// pixels.
func (n *net) withSecond(t encoders.Tower, rows int, in encoders.Inputs) encoders.Inputs {
	second := n.towerInputs(t, rows, map[string]string{batch.Images: batch.SecondImages})
	return encoders.Inputs{batch.Images: layout.ConcatRows(in[batch.Images], second[batch.Images])} // (2*rows, 3, S, S)
}

// compile compiles a computation for inference and binds parameters and inputs.
func (n *net) compile(c exec.Config, outputs gorgonia.Nodes) (*exec.Machine, error) {
	p := n.params.params
	if p.source != nil {
		if err := errors.Join(p.load(), p.held.keep(c.Engine, p.list)); err != nil {
			return nil, err
		}
	}
	c.Outputs = outputs
	m, err := exec.Compile(n.g, c)
	if err != nil {
		return nil, err
	}
	if onDevice(c.Engine) != nil {
		p.held.add(m)
	}
	if err := errors.Join(n.bindParams(m), n.inputs.Bind(m)); err != nil {
		return nil, errors.Join(err, p.held.drop(m))
	}
	n.prepareOnce(c.Engine, m)
	return m, nil
}

// bindParams ties the nodes of parameters, online and of the momentum encoder, to their memory.
func (n *net) bindParams(m *exec.Machine) error {
	return errors.Join(n.params.bindTo(m), n.momentum.bindTo(m))
}

// present are the nodes that are not nil.
func present(nodes ...*gorgonia.Node) gorgonia.Nodes {
	return slices.DeleteFunc(nodes, func(n *gorgonia.Node) bool { return n == nil })
}
