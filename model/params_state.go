package model

import "github.com/geoalign/geoalign/state"

// State returns the parts of a checkpoint that hold the parameters: "model", all of them,
// and "momentum", their momentum copies, where there are any.
func (p *Params) State() []state.Part {
	parts := []state.Part{paramsPart{p}}
	for _, q := range p.list {
		if q.Momentum {
			return append(parts, momentumPart{p})
		}
	}
	return parts
}

// paramsPart is every parameter under its name. Another set of names or shapes is another
// architecture.
type paramsPart struct{ p *Params }

var (
	_ state.Exact    = paramsPart{}
	_ state.Preparer = paramsPart{}
	_ state.Restorer = paramsPart{}
	_ state.Preparer = momentumPart{}
)

// PrepareSave implements state.Preparer: values on a device come to the host, or there is nothing to save.
func (x paramsPart) PrepareSave() error { return x.p.placed.fetch(ofValues) }

// Restored implements state.Restorer: the device takes what was read.
func (x paramsPart) Restored() error {
	x.p.changed()
	return nil
}

func (paramsPart) StateName() string { return "model" }
func (paramsPart) StateVersion() int { return 1 }
func (paramsPart) Counters() any     { return nil }
func (paramsPart) ExactTensors()     {}

func (x paramsPart) Tensors() (list []state.Tensor) {
	for _, q := range x.p.list {
		list = append(list, state.Tensor{Name: q.Name, Shape: q.Shape, Data: x.p.Value(q)})
	}
	return list
}

// momentumPart is the momentum copy of every parameter that has one, under its name.
type momentumPart struct{ p *Params }

func (momentumPart) StateName() string { return "momentum" }
func (momentumPart) StateVersion() int { return 1 }
func (momentumPart) Counters() any     { return nil }

// PrepareSave implements state.Preparer.
func (x momentumPart) PrepareSave() error { return x.p.placed.fetch(ofMomentum) }

func (x momentumPart) Tensors() (list []state.Tensor) {
	for _, q := range x.p.list {
		if q.Momentum {
			list = append(list, state.Tensor{Name: q.Name, Shape: q.Shape, Data: x.p.MomentumValue(q)})
		}
	}
	return list
}
