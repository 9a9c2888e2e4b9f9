package exec

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
)

// Nester is an op with a computation of its own, which it runs as often as a step needs it,
// such as once for each chunk of its operands: a step that is larger than memory.
//
// The machine around it plans the computation too, in the op's scratch, so that its memory
// is counted and lent to other ops. It runs on the engine of the machine around, looks for
// numbers that are not finite where that does, and stops with it; its ops are in the profile.
type Nester interface {
	// Nested returns the computation, nil for an op without one after all.
	Nested() *Nested
}

// Nested describes the computation within an op.
type Nested struct {
	Graph   *gorgonia.ExprGraph
	Outputs gorgonia.Nodes
	Runs    int // in one step
	// Partial says that runs use a part of the memory of results, whose rest may hold anything: whether numbers are
	// finite is looked for in the result of the op alone.
	Partial bool
	// OnDevice stands for it in a machine with a device, such as the same for larger chunks; nil: there is no other.
	OnDevice *Nested
}

// Inner is the compiled computation of a Nester. It is bound when the op is prepared;
// its memory holds between two runs what the op puts there, and nothing between two steps.
type Inner struct {
	*Machine
	Nested *Nested
	around *Machine // nil for an op that runs on its own
}

// Buffer returns where a device keeps the value of an output, or of an input that the op fills there before each Run:
// what the host has of that is not read. It is nil for an input that no output depends on.
func (n *Inner) Buffer(x *gorgonia.Node) (Buffer, error) {
	if i, ok := n.plan.index[x.ID()]; ok && n.plan.outputs[i] && n.views[i] == nil {
		return n.buffers[i], nil
	}
	slot := n.inputs[x.ID()]
	if slot == nil {
		return nil, nil
	}
	slot.placed = true
	if err := slot.take(n.cfg.Device); err != nil {
		return nil, err
	}
	return slot.own, n.SetInput(x, slot.own)
}

// Run computes the outputs. It ends with the run of the machine around.
func (n *Inner) Run() error {
	if n.around == nil {
		return n.RunAll()
	}
	return n.Machine.Run(n.around.ctx)
}

// nestedOf returns the computation within an op on the host or a device, or nil.
func nestedOf(o gorgonia.Op, d Device) *Nested {
	x, ok := o.(Nester)
	if !ok {
		return nil
	}
	n := x.Nested()
	if n != nil && n.OnDevice != nil && d != nil {
		return n.OnDevice
	}
	return n
}

// nested plans the computation within e's op and adds its memory to the scratch.
func (p *plan) nested(e *entry, cfg Config) error {
	n := nestedOf(e.node.Op(), cfg.Device)
	if n == nil {
		return nil
	}
	inner, err := newPlan(n.Graph, Config{Engine: cfg.Engine, Outputs: n.Outputs})
	if err != nil {
		return fmt.Errorf("exec: within %v: %w", e.node, err)
	}
	e.inner, e.own = inner, e.scratch
	e.scratch = aligned(e.own) + aligned(inner.arena) + inner.scratch
	return nil
}

// aligned rounds a number of elements up to the granularity of the arena.
func aligned(n int) int { return (n + align - 1) / align * align }

// inner makes the machine within entry e in the scratch of its op.
func (b *builder) inner(e *entry) (*Inner, error) {
	rest := b.scratch[aligned(e.own):e.scratch]
	own := nestedOf(e.node.Op(), b.cfg.Device)
	m := newMachine(Config{Engine: b.cfg.Engine, CheckNaN: b.cfg.CheckNaN && !own.Partial}, e.inner)
	m.arena, m.scratch = rest[:e.inner.arena], rest[aligned(e.inner.arena):]
	m.lent = true
	n := &Inner{Machine: m, Nested: own, around: b.Machine}
	if err := m.build(); err != nil {
		return nil, fmt.Errorf("exec: within %v: %w", e.node, err)
	}
	return n, nil
}

// innerOnDevice makes the machine within entry e on the device, with memory of its own there. The memory is counted as
// on the host; the host's steps within it work in the scratch of the op.
func (b *builder) innerOnDevice(e *entry) (*Inner, error) {
	own := nestedOf(e.node.Op(), b.cfg.Device)
	cfg := Config{Engine: b.cfg.Engine, Device: b.cfg.Device, CheckNaN: b.cfg.CheckNaN && !own.Partial}
	m := newMachine(cfg, e.inner)
	m.scratch, m.within = b.scratch[aligned(e.own)+aligned(e.inner.arena):e.scratch], true
	n := &Inner{Machine: m, Nested: own, around: b.Machine}
	err := m.alloc()
	if err == nil {
		err = m.build()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("exec: within %v: %w", e.node, err), m.free())
	}
	return n, nil
}

// doInner is the computation within an op that runs on its own, see Do.
func doInner(o gorgonia.Op, e Engine) (*Inner, error) {
	n := nestedOf(o, nil)
	if n == nil {
		return nil, nil
	}
	m, err := Compile(n.Graph, Config{Engine: e, Outputs: n.Outputs})
	return &Inner{Machine: m, Nested: n}, err
}

// constant is the value of a constant in memory that others use between two runs.
type constant struct{ at, value Array }

// keep remembers the value of a constant.
func (m *Machine) keep(a Array) {
	c := constant{at: a, value: newArray(a.Shape, a.I32 != nil)}
	copy(c.value.F32, a.F32)
	copy(c.value.I32, a.I32)
	m.constants = append(m.constants, c)
}

// restore writes constants to memory that others have used.
func (m *Machine) restore() error {
	if m.room != nil {
		if m.room.last == m {
			return nil
		}
		m.room.last = nil
		for _, b := range m.stored {
			if err := b.Store(); err != nil {
				return err
			}
		}
		m.room.last = m
		return nil
	}
	for _, c := range m.constants {
		copy(c.at.F32, c.value.F32)
		copy(c.at.I32, c.value.I32)
	}
	return nil
}
