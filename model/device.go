package model

import (
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// The slabs of a placement.
const (
	ofValues = iota
	ofGrads
	ofMomentum
)

// placement is where parameters, gradients and momentum copies lie on a device. The slabs of the host stay: whoever
// asks for a parameter there gets it as the device has it, and what is changed there the device takes before its next
// work.
type placement struct {
	device *cuda.Device
	slabs  [3]*cuda.Mirror // nil where there is nothing
}

// onDevice returns the device that computations with an engine run on, nil: the host.
func onDevice(e exec.Engine) *cuda.Device {
	if x, ok := e.(exec.DeviceEngine); ok {
		d, _ := x.Device().(*cuda.Device)
		return d
	}
	return nil
}

// place takes the parameters of training to the device of an engine, if it has one.
func (p *Params) place(e exec.Engine) (err error) {
	d := onDevice(e)
	if d == nil || p.placed != nil {
		return nil
	}
	var spans, momentum []cuda.Span
	for _, q := range p.list {
		if q.Locked {
			if err := p.held.keepOn(d, q.own, e.BF16()); err != nil {
				return err
			}
			continue
		}
		spans = append(spans, cuda.Span{Lo: q.offset, Hi: q.offset + q.Len()})
		if q.Momentum {
			momentum = append(momentum, cuda.Span{Lo: q.mirror, Hi: q.mirror + q.Len()})
		}
	}
	x := &placement{device: d}
	for i, s := range []struct {
		host    []float32
		spans   []cuda.Span
		rounded bool // what products read once in a step they round themselves
	}{{p.values, spans, e.BF16()}, {p.grads, spans, false}, {p.momentum, momentum, false}} {
		if len(s.host) == 0 {
			continue
		}
		if x.slabs[i], err = d.Mirror(s.host, s.spans, s.rounded); err != nil {
			return cause.Join(err, x.close())
		}
		if i != ofGrads {
			x.slabs[i].Touch(0, len(s.host))
		}
	}
	p.placed = x
	return nil
}

// deviceMemory is what lies on a device besides the slabs of training: values that never change there, and computations
// for inference.
type deviceMemory struct {
	mirrors  []*cuda.Mirror
	machines map[*exec.Machine]bool
}

// keepOn has a device keep values that never change, until close.
func (h *deviceMemory) keepOn(d *cuda.Device, own []float32, rounded bool) error {
	if _, kept := d.Mirrored(own); kept || len(own) == 0 {
		return nil
	}
	m, err := d.Mirror(own, []cuda.Span{{Lo: 0, Hi: len(own)}}, rounded)
	if err == nil {
		m.Touch(0, len(own))
		h.mirrors = append(h.mirrors, m)
	}
	return err
}

// add has close give the memory of a computation back.
func (h *deviceMemory) add(m *exec.Machine) {
	if h.machines == nil {
		h.machines = map[*exec.Machine]bool{}
	}
	h.machines[m] = true
}

// drop gives the memory of a computation back that is not run any more.
func (h *deviceMemory) drop(m *exec.Machine) error {
	if !h.machines[m] {
		return nil // the host's, which nobody holds then
	}
	delete(h.machines, m)
	return m.Close()
}

// close gives all memory back.
func (h *deviceMemory) close() error {
	var errs []error
	for m := range h.machines {
		errs = append(errs, m.Close())
	}
	for _, m := range h.mirrors {
		errs = append(errs, m.Close())
	}
	*h = deviceMemory{}
	return cause.Join(errs...)
}

// keep has the device of an engine, if there is one, keep the values of parameters that lie in no slab.
func (h *deviceMemory) keep(e exec.Engine, list []*Param) error {
	d := onDevice(e)
	if d == nil {
		return nil
	}
	for _, q := range list {
		if err := h.keepOn(d, q.own, e.BF16()); err != nil {
			return err
		}
	}
	return nil
}

// changed says that the host has changed parameters that the device keeps and that training does not change.
func (p *Params) changed() {
	if p.placed == nil {
		return
	}
	for _, q := range p.list {
		if q.Locked {
			p.placed.device.Touch(q.own, 0, len(q.own))
		}
	}
}

// host brings values from lo to hi of a slab of the host's up to date, for a caller that may change them.
func (x *placement) host(slab, lo, hi int) {
	if x != nil && x.slabs[slab] != nil {
		x.slabs[slab].Edit(lo, hi)
	}
}

// fetch brings a slab to the host.
func (x *placement) fetch(slab int) error {
	if x == nil || x.slabs[slab] == nil {
		return nil
	}
	m := x.slabs[slab]
	m.Read(0, len(m.Host()))
	return m.Err()
}

// Device returns the device that the parameters of training lie on, with the mirrors of their values, gradients and
// momentum copies (nil without); nil: the host.
func (p *Params) Device() (d *cuda.Device, values, grads, momentum *cuda.Mirror) {
	if x := p.placed; x != nil {
		return x.device, x.slabs[ofValues], x.slabs[ofGrads], x.slabs[ofMomentum]
	}
	return nil, nil, nil, nil
}

// close gives the device's memory back. What is asked of the parameters afterwards is what the host had last.
func (x *placement) close() error {
	if x == nil {
		return nil
	}
	var errs []error
	for _, m := range x.slabs {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return cause.Join(errs...)
}
