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

// SetShadow tells the ops that read a graph input of a bfloat16 copy of its values,
// which is read at every run; nil takes it away. The caller keeps it in step with
// the input's values. Like SetInput it reaches all uses, also those under another
// shape, ignores inputs that no output depends on and allocates nothing.
func (m *Machine) SetShadow(n *gorgonia.Node, bf16 []uint16) error {
	slot := m.inputs[n.ID()]
	switch {
	case slot == nil:
		return nil
	case bf16 == nil:
	case slot.node.Dtype() != tensor.Float32:
		return fmt.Errorf("exec: input %s is %v: only float32 has a bfloat16 copy", slot.node.Name(), slot.node.Dtype())
	case len(bf16) != slot.array.Len():
		return fmt.Errorf("exec: input %s has %d elements, its bfloat16 copy %d", slot.node.Name(), slot.array.Len(),
			len(bf16))
	}
	slot.array.BF16 = bf16
	for _, u := range slot.uses {
		u.call.In[u.operand].BF16 = bf16
	}
	return nil
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
