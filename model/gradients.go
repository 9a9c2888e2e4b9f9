package model

// Span is the places Lo, Lo+1, ... Hi-1 of the flat buffers of Params.
type Span struct{ Lo, Hi int }

// GradientOrder returns the places of the gradients of all parameters that are trained, one span for each, in the order in
// which Step completes them: those of the last layers first. It is nil where they are complete at the end of Step
// alone, with losses that change gradients and with train.accumulate = "features".
func (p *Pairs) GradientOrder() (order []Span) {
	if p.step == nil || p.cache != nil || p.filters() {
		return nil
	}
	for _, n := range p.step.machine.Bound() {
		order = append(order, p.step.places[n.ID()])
	}
	return order
}

// OnGradients has Step call f while it runs as soon as the gradients of span k of GradientOrder are
// complete, which then are the caller's. nil ends it.
func (p *Pairs) OnGradients(f func(k int)) { p.step.machine.OnComplete(f) }
