package exec

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gorgonia.org/gorgonia"
)

// Machine is a compiled graph.
type Machine struct {
	cfg     Config
	plan    *plan
	arena   []float32      // on the host
	memory  Memory         // on a device, else nil
	bound   map[int]Memory // of a device for units in memory of the caller's
	handed  map[int]Buffer // in it
	buffers []Buffer       // for each entry that is computed or constant
	scratch []float32
	inputs  map[int64]*inputSlot // by node
	views   []*inputSlot         // for each entry that is an input or an alias of one
	prog    []instruction
	prof    profile
	// ctx is that of the run, which computations within ops end with.
	ctx context.Context
	// lent: the memory is the scratch of an op. Constants are written at every run then.
	lent      bool
	constants []constant
}

var _ gorgonia.VM = (*Machine)(nil)

// RunAll implements gorgonia.VM: it is Run to the end.
func (m *Machine) RunAll() error { return m.Run(context.Background()) }

// Run computes the outputs. Inputs without a bound value are taken from the
// values that gorgonia.Let gave their nodes. When ctx is done the run ends with its error
// before the next op: the inputs are as they were, the outputs are not of one run.
func (m *Machine) Run(ctx context.Context) error {
	for _, s := range m.views {
		if s != nil && !s.bound {
			if err := s.let(); err != nil {
				return err
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if m.memory != nil {
		if err := m.bring(); err != nil {
			return fmt.Errorf("exec: inputs to %s: %w", m.cfg.Device.Name(), err)
		}
	}
	m.prof.runs++
	m.ctx = ctx
	m.restore()
	for i := range m.prog {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := &m.prog[i]
		start := time.Now()
		if err := in.step(); err != nil {
			return fmt.Errorf("exec: %v: %w", in.node, err)
		}
		in.time += time.Since(start)
		if m.cfg.CheckNaN {
			if err := checkFinite(in); err != nil {
				return err
			}
		}
	}
	return m.hand()
}

// Value returns the value of an output or of an input. The memory belongs to the
// machine and is overwritten by the next run.
func (m *Machine) Value(n *gorgonia.Node) (Array, error) {
	i, ok := m.plan.index[n.ID()]
	switch {
	case ok && m.views[i] != nil:
		a := m.views[i].array
		a.Shape = m.plan.entries[i].out.shape
		return a, nil
	case !ok || !m.plan.outputs[i]:
		return Array{}, fmt.Errorf("exec: %v was not compiled as an output", n)
	}
	if err := m.buffers[i].Fetch(); err != nil {
		return Array{}, fmt.Errorf("exec: value of %v: %w", n, err)
	}
	return m.buffers[i].Host(), nil
}

// Scalar returns the value of a scalar output.
func (m *Machine) Scalar(n *gorgonia.Node) (float32, error) {
	a, err := m.Value(n)
	if err != nil {
		return 0, err
	}
	if len(a.F32) != 1 {
		return 0, fmt.Errorf("exec: %v is no scalar", n)
	}
	return a.F32[0], nil
}

// Reset does nothing: a run starts from its inputs alone.
func (m *Machine) Reset() {}

// Close forgets the program and gives memory of a device back. The engine stays open.
func (m *Machine) Close() error {
	err := m.free()
	*m = Machine{}
	return err
}

// Memory returns the bytes of intermediate results and scratch that the machine holds, on
// a device without its copies for the host's steps.
func (m *Machine) Memory() int64 {
	if m.plan == nil { // closed
		return 0
	}
	return m.plan.bytes()
}

// Nodes returns the number of nodes that run.
func (m *Machine) Nodes() int { return len(m.prog) }
