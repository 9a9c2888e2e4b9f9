package exec

import (
	"fmt"
	"runtime"
	"time"

	"gorgonia.org/gorgonia"
)

// Machine is a compiled graph.
type Machine struct {
	cfg     Config
	plan    *plan
	arena   []float32
	scratch []float32
	inputs  map[int64]*inputSlot // by node
	views   []*inputSlot         // for each entry that is an input or an alias of one
	prog    []instruction
	prof    profile
}

var _ gorgonia.VM = (*Machine)(nil)

// RunAll computes the outputs. Inputs without a bound value are taken from the
// values that gorgonia.Let gave their nodes.
func (m *Machine) RunAll() error {
	for _, s := range m.views {
		if s != nil && !s.bound {
			if err := s.let(); err != nil {
				return err
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.prof.runs++
	for i := range m.prog {
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
	return nil
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
	return m.array(m.plan.entries[i].out), nil
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

// Close forgets the program. The engine stays open.
func (m *Machine) Close() error {
	*m = Machine{}
	return nil
}

// Memory returns the bytes of intermediate results and scratch that the machine holds.
func (m *Machine) Memory() int64 { return 4 * int64(len(m.arena)+len(m.scratch)) }

// Nodes returns the number of nodes that run.
func (m *Machine) Nodes() int { return len(m.prog) }
