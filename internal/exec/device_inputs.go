package exec

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// copyGrain is the least number of values that are worth a thread when they are copied.
const copyGrain = 1 << 18

// bring takes the inputs to the device before a run: those that it keeps itself to the
// host's steps, and the caller's memory to the device's.
func (m *Machine) bring() error {
	if m.within && !m.copies() { // the run around has done it
		return nil
	}
	if err := m.wait(); err != nil { // what an earlier run reads may not change under it
		return err
	}
	if d, ok := m.cfg.Device.(Mirrorer); ok {
		if err := d.Refresh(); err != nil {
			return err
		}
	}
	for _, s := range m.inputs {
		if !s.placed {
			continue
		}
		if s.resident {
			if len(s.uses) > 0 {
				if err := s.buffer.Fetch(); err != nil {
					return err
				}
			}
			continue
		}
		if s.buffer == nil {
			if err := s.take(m.cfg.Device); err != nil {
				return err
			}
		}
		if taken, err := s.takeStaged(); taken || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if lender, ok := m.cfg.Device.(Borrower); ok {
			if done, err := lender.Borrow(s.buffer, s.array); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		view := s.buffer.Host()
		if n := len(s.array.F32); n > 0 {
			m.cfg.Engine.For(n, copyGrain, func(_, lo, hi int) { copy(view.F32[lo:hi], s.array.F32[lo:hi]) })
		}
		copy(view.I32, s.array.I32)
		if err := s.buffer.Store(); err != nil {
			return err
		}
	}
	return nil
}

// copies says whether inputs are copied before a run, to the device or from it.
func (m *Machine) copies() bool {
	for _, s := range m.inputs {
		if s.buffer != nil && (!s.resident || len(s.uses) > 0) {
			return true
		}
	}
	return false
}

// hand copies what is bound to memory of the caller's there after a run.
func (m *Machine) hand() error {
	for i, b := range m.handed {
		if err := b.Fetch(); err != nil {
			return err
		}
		copy(m.plan.units[i].external, b.Host().F32)
	}
	return nil
}

// take gives an input that a step on the device reads a buffer there, where the caller binds it to memory of the
// host's.
func (s *inputSlot) take(d Device) error {
	spec := inputSpec(s.node)
	if s.own == nil {
		mem, err := d.Alloc(spec.Words())
		if err != nil {
			return fmt.Errorf("memory for input %s: %w", s.node.Name(), err)
		}
		s.memory, s.own = mem, mem.Buffer(0, spec)
	}
	s.point(s.own)
	return nil
}

// point has the device's steps read b.
func (s *inputSlot) point(b Buffer) {
	s.exchanges++
	s.buffer = b
	for _, u := range s.deviceUses {
		u.Buffer = b
	}
}

// inputSpec says what an input holds, or an input under another shape.
func inputSpec(n *gorgonia.Node) Spec {
	s := Spec{Shape: n.Shape()}
	if n.Dtype() == tensor.Int32 {
		s.Type = Int32
	}
	return s
}
