package exec

import (
	"slices"

	"gorgonia.org/gorgonia"
)

// completion is the last place of a run that touches what a bound node is written to. From then on the memory
// holds the value of the run, and nobody else reads it.
type completion struct {
	node  *gorgonia.Node
	place int
}

// completions finds when bound nodes are complete, the first ones first.
func (p *plan) completions(bind map[*gorgonia.Node][]float32) {
	last := make([]int, len(p.units))
	touch := func(e entry, pos int) {
		for _, r := range e.results() {
			if r.unit >= 0 {
				last[r.unit] = pos
			}
		}
	}
	for pos, e := range p.entries {
		if e.input || e.alias || e.consts != nil {
			continue
		}
		touch(e, pos)
		for _, j := range e.in {
			touch(p.entries[j], pos)
		}
	}
	for n := range bind {
		p.complete = append(p.complete, completion{n, last[p.entries[p.index[n.ID()]].out.unit]})
	}
	slices.SortFunc(p.complete, func(a, b completion) int {
		if a.place != b.place {
			return a.place - b.place
		}
		return int(a.node.ID() - b.node.ID())
	})
}

// Bound returns the nodes that are bound to memory of the caller's, in the order in which a run completes them.
func (m *Machine) Bound() (nodes gorgonia.Nodes) {
	for _, c := range m.plan.complete {
		nodes = append(nodes, c.node)
	}
	return nodes
}

// OnComplete has Run call f as soon as the memory of node k of Bound holds its value and is not read any more in this
// run: the caller may change it while the run goes on. On a device that is at the end. nil ends it.
func (m *Machine) OnComplete(f func(k int)) { m.onComplete = f }
