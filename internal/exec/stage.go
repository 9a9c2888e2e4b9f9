package exec

import (
	"errors"
	"unsafe"

	"gorgonia.org/gorgonia"
)

// Stage tells a machine on a device of values that SetInput will bind to an input before the next run: the device may
// copy them beside what it computes now. They may not change until the end of that run, or Unstage. It does nothing
// where the device cannot, no step of the device reads the input, or the values are few.
func (m *Machine) Stage(n *gorgonia.Node, values []float32) error {
	slot, d := m.inputs[n.ID()], m.stager()
	if d == nil || slot == nil || !slot.placed || slot.resident || slot.buffer == nil ||
		len(values) != slot.array.Len() {
		return nil
	}
	if slot.stage == nil {
		var err error
		if slot.stage, err = d.NewStage(inputSpec(slot.node)); err != nil {
			return err
		}
	}
	if slot.staged != nil { // the caller may change those
		if err := slot.stage.Drop(); err != nil {
			return err
		}
	}
	slot.staged = nil
	done, err := slot.stage.Fill(Array{Shape: slot.array.Shape, F32: values})
	if done && err == nil {
		slot.staged = values
	}
	return err
}

// takeStaged has the slot's buffer filled from where its values wait, if they are those that are bound. Others that
// wait are not those of the next run after all, and are forgotten.
func (s *inputSlot) takeStaged() (bool, error) {
	staged := s.staged
	if s.staged = nil; staged == nil {
		return false, nil
	}
	if unsafe.SliceData(staged) != unsafe.SliceData(s.array.F32) {
		return false, s.stage.Drop()
	}
	return true, s.stage.Take(s.buffer)
}

// Unstage forgets what Stage was told: it returns when the device does not read those values any more.
func (m *Machine) Unstage() error {
	var errs []error
	for _, s := range m.inputs {
		if s.staged != nil {
			s.staged = nil
			errs = append(errs, s.stage.Drop())
		}
	}
	return errors.Join(errs...)
}

func (m *Machine) stager() Stager {
	d, _ := m.cfg.Device.(Stager)
	return d
}
