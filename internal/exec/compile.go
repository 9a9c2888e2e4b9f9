package exec

import (
	"errors"
	"fmt"
	"time"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/memory"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Config says what to compile.
type Config struct {
	// Engine is what steps on the host compute with.
	Engine Engine
	// Device keeps the results and runs the ops that have steps for it; nil is that of the engine, see DeviceEngine,
	// and without one the host.
	Device Device
	// Outputs are the nodes to compute. Their values are valid after a run.
	Outputs gorgonia.Nodes
	// Bind gives memory of the caller's to some of the outputs, which are then
	// written there, such as gradients into one flat buffer.
	Bind map[*gorgonia.Node][]float32
	// Lend is memory of the caller's that holds nothing of worth before a run where nodes are bound to parts of it,
	// such as the flat buffer of all gradients: results lie there until the op that writes the bound node. What nobody
	// is bound to keeps its values.
	Lend []float32
	// Recompute trades time for memory: parts of the forward pass that are computed
	// again for the backward pass. The zero value keeps everything.
	Recompute Recompute
	// Forward says that no op of the graph is of a backward pass: results that such ops alone read (see
	// Sparer) are not kept.
	Forward bool
	// Room is where results lie, with those of other machines; nil: in memory of the machine's own.
	Room *Room
	// MaxBytes refuses, with a *MemoryError, a plan whose results need more memory;
	// 0 refuses none.
	MaxBytes int64
	// CheckNaN looks at every result and stops at the first op that makes a NaN
	// or an infinity out of finite operands. Slow.
	CheckNaN bool
	// RunOn has a run with CheckNaN go on to its end, and return the error of the first such op then: other processes
	// wait for what later ops exchange.
	RunOn bool
}

// instruction is one op in the program of a machine.
type instruction struct {
	step  Step
	out   Buffer
	node  *gorgonia.Node
	place int           // in the plan
	kind  int           // index into profile.kinds
	time  time.Duration // of all runs since ResetProfile
	// exposed are the auxiliary results that other nodes name.
	exposed  []Buffer
	inner    *Inner // of an op with a computation of its own
	onDevice bool   // the step is the device's own
	// completes is the number of bound nodes that are complete after it.
	completes int
}

// Compile plans the graph and prepares every op.
func Compile(g *gorgonia.ExprGraph, cfg Config) (*Machine, error) {
	switch {
	case cfg.Engine == nil:
		return nil, errors.New("exec: no engine to run on")
	case len(cfg.Outputs) == 0:
		return nil, errors.New("exec: no outputs to compute")
	}
	if e, ok := cfg.Engine.(DeviceEngine); ok && cfg.Device == nil {
		cfg.Device, _ = e.Device().(Device)
	}
	p, err := newPlan(g, cfg)
	if err != nil {
		return nil, err
	}
	if need := p.bytes(); cfg.MaxBytes > 0 && need > cfg.MaxBytes {
		err := error(&MemoryError{Need: need, Max: cfg.MaxBytes})
		if p.lent.Memory != nil {
			err = cause.Join(err, p.lent.Memory.Free())
		}
		return nil, err
	}
	m := newMachine(cfg, p)
	switch {
	case cfg.Room != nil && cfg.Device == nil:
		m.scratch, m.arena, m.lent = cfg.Room.take(&cfg.Room.scratch, p.scratch),
			cfg.Room.take(&cfg.Room.arena, p.arena), true
	case cfg.Device == nil:
		m.arena = memory.Floats(p.arena)
		fallthrough
	default:
		m.scratch = memory.Floats(p.scratch)
	}
	if err := m.alloc(); err != nil {
		return nil, cause.Join(err, m.free())
	}
	if err := m.build(); err != nil {
		return nil, cause.Join(err, m.free())
	}
	return m, nil
}

// newMachine returns a machine for a plan, without memory and program.
func newMachine(cfg Config, p *plan) *Machine {
	return &Machine{
		cfg: cfg, plan: p, buffers: make([]Buffer, len(p.entries)),
		inputs: map[int64]*inputSlot{}, views: make([]*inputSlot, len(p.entries)), prof: newProfile(),
	}
}

// build makes the program.
func (m *Machine) build() error {
	n := len(m.plan.entries)
	b := builder{Machine: m, maker: make([]int, n), auxes: make([][]Buffer, n), read: m.plan.read()}
	for i := range n {
		if err := b.entry(i); err != nil {
			return err
		}
	}
	for _, c := range m.plan.complete {
		b.prog[b.maker[c.place]].completes++
	}
	return nil
}

// builder is what Compile keeps in mind of the entries before the one at hand.
type builder struct {
	*Machine
	auxes [][]Buffer // auxiliary results
	maker []int      // the instruction that computes an entry
	read  map[value]bool
}

// entry makes what entry i of the plan takes: a slot, the value of a constant, or an
// instruction.
func (b *builder) entry(i int) error {
	e := &b.plan.entries[i]
	switch {
	case e.input:
		b.views[i] = &inputSlot{node: e.node, array: Array{Shape: e.out.shape}}
		b.views[i].mirrors, _ = b.cfg.Device.(Mirrorer)
		b.inputs[e.node.ID()] = b.views[i]
		return nil
	case e.alias && e.out.unit < 0:
		b.views[i] = b.views[e.source]
		return nil
	}
	b.buffers[i] = b.buffer(e.out)
	for _, a := range e.aux {
		b.auxes[i] = append(b.auxes[i], b.buffer(a))
	}
	switch {
	case e.consts != nil:
		err := fill(b.buffers[i].Host(), e.consts)
		if err == nil {
			err = b.buffers[i].Store()
		}
		if err != nil {
			return fmt.Errorf("exec: constant %v: %w", e.node, err)
		}
		switch {
		case b.room != nil:
			b.stored = append(b.stored, b.buffers[i])
		case b.lent:
			b.keep(b.buffers[i].Host())
		}
		return nil
	case e.alias:
		if e.exposes {
			in := &b.prog[b.maker[e.source]]
			in.exposed = append(in.exposed, b.buffers[i])
		}
		return nil
	}
	return b.instruction(i)
}

// instruction prepares the op of entry i: its step for the device if there is one, else that of the host.
func (b *builder) instruction(i int) error {
	e := &b.plan.entries[i]
	shapes := b.plan.shapes(e)
	in := instruction{out: b.buffers[i], node: e.node, place: i, kind: b.prof.add(e.node.Op(), shapes)}
	var err error
	if b.cfg.Device != nil {
		if in.step, in.inner, err = b.onDevice(i, e.accumulate); err != nil {
			return fmt.Errorf("exec: %v: %w", e.node, err)
		}
		in.onDevice = in.step != nil
	}
	if in.step == nil {
		if in.step, in.inner, err = b.onHost(i, shapes); err != nil {
			return fmt.Errorf("exec: %v: %w", e.node, err)
		}
	}
	if in.step, err = b.shade(i, in.step, in.onDevice); err != nil {
		return fmt.Errorf("exec: %v: %w", e.node, err)
	}
	b.maker[i] = len(b.prog)
	b.prog = append(b.prog, in)
	return nil
}

// onHost prepares the host's step of entry i. On a device it works on copies.
func (b *builder) onHost(i int, shapes []tensor.Shape) (Step, *Inner, error) {
	e := &b.plan.entries[i]
	c := &Call{
		Engine: b.cfg.Engine, Out: b.buffers[i].Host(), Aux: views(b.auxes[i]), Accumulate: e.accumulate,
		Scratch: b.scratch[:e.scratch:e.scratch],
	}
	if e.inner != nil {
		c.Scratch = b.scratch[:e.own:e.own]
		var err error
		if c.Inner, err = b.inner(e); err != nil {
			return nil, nil, err
		}
	}
	var in []Buffer
	for k, j := range e.in {
		c.InAux = append(c.InAux, views(b.auxes[j]))
		if slot := b.views[j]; slot != nil {
			c.In = append(c.In, Array{Shape: shapes[k]})
			slot.uses = append(slot.uses, inputUse{c, k})
		} else {
			in = append(in, b.operand(e, k).Buffer)
			c.In = append(c.In, in[len(in)-1].Host())
		}
	}
	if b.cfg.Device == nil {
		step, err := prepare(e.node.Op(), c)
		return step, c.Inner, err
	}
	read, written := b.widen(e, c)
	step, err := prepare(e.node.Op(), c)
	return b.staged(i, c, in, widened(read, written, step)), c.Inner, err
}

// views returns the host's views of buffers.
func views(buffers []Buffer) (out []Array) {
	for _, b := range buffers {
		out = append(out, b.Host())
	}
	return out
}
