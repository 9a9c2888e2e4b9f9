package exec

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// inputSlot is a graph input and the calls that read it.
type inputSlot struct {
	node  *gorgonia.Node
	array Array
	bound bool // by SetInput, which goes before a value of the node's own
	uses  []inputUse
	// On a device: whether a step of the device reads it, and the value there, in memory of the slot's own or, if it is
	// resident, of the caller's; nil so far.
	placed     bool
	buffer     Buffer
	own        Buffer
	memory     Memory
	resident   bool
	deviceUses []*Operand
	exchanges  int // of buffers: recorded steps know the old one
	// Values that a later run will have, on their way to the device.
	stage   Stage
	staged  []float32
	mirrors Mirrorer // of the device, nil: it has none
}

type inputUse struct {
	call    *Call
	operand int
}

// SetInput binds a graph input to the caller's memory: []float32 or []int32, which
// is read at every run and never written, or a Buffer of the machine's device, such as a
// parameter that stays there. It allocates nothing.
func (m *Machine) SetInput(n *gorgonia.Node, data any) error {
	slot := m.inputs[n.ID()]
	if slot == nil {
		return nil // no output depends on it
	}
	if err := slot.set(data); err != nil {
		return err
	}
	slot.bound = true
	return nil
}

// set points the slot and all its uses to data, or changes nothing if it does not fit.
func (s *inputSlot) set(data any) error {
	b, isBuffer := data.(Buffer)
	if host, ok := data.([]float32); ok && s.mirrors != nil {
		if mem, ok := s.mirrors.Mirrored(host); ok && len(host) == s.array.Len() {
			b, isBuffer = mem.Buffer(0, inputSpec(s.node)), true
		}
	}
	if isBuffer {
		if view := b.Host(); view.I32 != nil {
			data = view.I32
		} else {
			data = view.F32
		}
	}
	f32, isFloat := data.([]float32)
	i32, isInt := data.([]int32)
	wantInt := s.node.Dtype() == tensor.Int32
	if wantInt && !isInt || !wantInt && !isFloat {
		return fmt.Errorf("exec: input %s wants %v (got %T)", s.node.Name(), s.node.Dtype(), data)
	}
	if got, want := len(f32)+len(i32), s.array.Len(); got != want {
		return fmt.Errorf("exec: input %s has %d elements (got %d)", s.node.Name(), want, got)
	}
	s.array.F32, s.array.I32 = f32, i32
	s.setBuffer(b)
	for _, u := range s.uses {
		in := &u.call.In[u.operand]
		in.F32, in.I32 = f32, i32
	}
	return nil
}

// setBuffer points the device's steps to b or, without one, to the slot's own buffer, which the next run makes where
// there is none.
func (s *inputSlot) setBuffer(b Buffer) {
	if b == nil && !s.resident {
		return
	}
	if s.resident = b != nil; s.resident {
		s.point(b)
	} else {
		s.point(s.own)
	}
}

// let takes the value that gorgonia.Let gave the node.
func (s *inputSlot) let() error {
	v := s.node.Value()
	if v == nil {
		return fmt.Errorf("exec: input %s has no value", s.node.Name())
	}
	switch d := v.Data().(type) {
	case float32:
		return s.set([]float32{d})
	case int32:
		return s.set([]int32{d})
	default:
		return s.set(d)
	}
}
