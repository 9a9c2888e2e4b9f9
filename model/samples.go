package model

import (
	"github.com/geoalign/geoalign/interact"
	"gorgonia.org/gorgonia"
)

// samples are what an update's micro-batches say of matched and of mismatched words, of which the
// boundary between both is learned.
type samples struct {
	node     *gorgonia.Node // (6) of the batch
	all      interact.Samples
	gathered []float32
}

// samples takes the samples of an interaction that learns from some.
func (b *builder) samples() {
	if b.cfg.Model.Interaction.Kind == interact.NAAF {
		b.s.Student.Samples = func(n *gorgonia.Node) { b.step.samples = &samples{node: n} }
	}
}

// sample keeps the samples of the last batch, the first one of an update or a further one, of all
// processes.
func (p *Pairs) sample(first bool) error {
	x := p.step.samples
	if x == nil {
		return nil
	}
	if first {
		x.all = interact.Samples{}
	}
	v, err := p.step.machine.Value(x.node)
	if err != nil {
		return err
	}
	if r := p.ranks(); r.Group != nil && !r.Local { // of all already
		x.all.Add(v.F32)
		return nil
	}
	if x.gathered, err = p.o.Group.Gather(x.gathered[:0], v.F32); err != nil {
		return err
	}
	x.all.Add(x.gathered)
	return nil
}

// moveBoundary moves the boundary of mismatched words by the samples of the update.
func (p *Pairs) moveBoundary() {
	x := p.step.samples
	if x == nil {
		return
	}
	q, _ := p.params.Get(interact.BoundaryName)
	v := p.params.Value(q)
	t, safe := x.all.Boundary(float64(v[0]), float64(v[1]), p.cfg.Model.Interaction.Penalty)
	v[0], v[1] = float32(t), float32(safe)
	x.all = interact.Samples{}
}
