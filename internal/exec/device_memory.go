package exec

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/cause"
	"gorgonia.org/tensor"
)

// spec says what a result holds.
func (m *Machine) spec(r result) Spec {
	s := Spec{Shape: r.shape}
	switch {
	case r.ints:
		s.Type = Int32
	case m.plan.units[r.unit].half:
		s.Type = BFloat16
	}
	return s
}

// buffer returns a computed result.
func (m *Machine) buffer(r result) Buffer {
	u := m.plan.units[r.unit]
	switch {
	case m.memory == nil && u.external != nil:
		return hostBuffer{m.spec(r).Array(u.external)}
	case m.memory == nil && u.lent:
		return hostBuffer{m.spec(r).Array(m.cfg.Lend[u.offset:])}
	case m.memory == nil:
		return hostBuffer{m.spec(r).Array(m.arena[u.offset:])}
	case u.external != nil:
		return m.bound[r.unit].Buffer(0, m.spec(r))
	case u.lent:
		return m.plan.lent.Memory.Buffer(u.offset, m.spec(r))
	}
	return m.memory.Buffer(u.offset, m.spec(r))
}

// alloc gives the machine memory for its plan: the host's, or the device's, where what
// lies in memory of the caller's has a place of its own.
func (m *Machine) alloc() (err error) {
	d := m.cfg.Device
	if d == nil {
		return nil
	}
	shared := false
	if room := m.cfg.Room; room == nil {
		m.memory, err = d.Alloc(m.plan.arena)
	} else if m.memory, shared, err = room.on(d, m.plan.arena); shared {
		m.room, room.last = room, nil // constants are written there
	}
	if err != nil {
		return fmt.Errorf("exec: memory of %s: %w", d.Name(), err)
	}
	m.bound, m.handed = map[int]Memory{}, map[int]Buffer{}
	for i, u := range m.plan.units {
		if u.external == nil || m.bound[i] != nil {
			continue
		}
		if x, ok := d.(Mirrorer); ok {
			if mem, ok := x.Mirrored(u.external); ok {
				m.bound[i], m.mirrored = mem, append(m.mirrored, mem)
				continue
			}
		}
		mem, err := d.Alloc(u.size)
		if err != nil {
			return fmt.Errorf("exec: memory of %s: %w", d.Name(), err)
		}
		m.bound[i], m.handed[i] = mem, mem.Buffer(0, Spec{Shape: tensor.Shape{u.size}})
	}
	return nil
}

// free gives back what alloc and place took.
func (m *Machine) free() error {
	errs := m.forget()
	if m.memory != nil {
		errs = append(errs, m.memory.Free())
	}
	if m.plan != nil && m.plan.lent.Memory != nil { // not closed
		errs = append(errs, m.plan.lent.Memory.Free())
	}
	for _, mem := range m.bound {
		errs = append(errs, mem.Free())
	}
	for _, s := range m.inputs {
		if s.memory != nil {
			errs = append(errs, s.memory.Free())
		}
		if s.stage != nil {
			errs = append(errs, s.stage.Free())
		}
	}
	for _, in := range m.prog {
		if in.inner != nil && in.inner.memory != nil {
			errs = append(errs, in.inner.free())
		}
	}
	return cause.Join(errs...)
}
