package exec

import "gorgonia.org/gorgonia"

// accumulate turns a sum of an early result and a late one, whose op can add to what
// is there, into that op working on the early result's memory: the sum of two
// gradients costs no pass of its own. The early result must die with the sum and must
// not be read once the late op has run.
func (p *plan) accumulate(external map[int][]float32, m *merged) {
	for pos := range p.entries {
		sum := &p.entries[pos]
		if sum.input || sum.alias || sum.consts != nil || !isSum(sum.node.Op()) {
			continue
		}
		a, b := sum.in[0], sum.in[1]
		if p.computedAt(a) > p.computedAt(b) {
			a, b = b, a
		}
		early, late := &p.entries[a], &p.entries[b]
		if acc, ok := late.node.Op().(Accumulator); !ok || !acc.Accumulates() || late.alias || late.accumulate {
			continue
		}
		if early.consts != nil || early.out.unit < 0 || early.out.ints || sum.out.ints {
			continue
		}
		u, v, w := m.find(early.out.unit), late.out.unit, sum.out.unit
		if p.units[u].half || p.units[v].half || p.units[w].half {
			continue // sums are made in float32
		}
		if p.units[u].size != p.units[v].size || p.units[v].size != p.units[w].size {
			continue // a sum over rows or the like
		}
		if u == v || p.units[u].to != pos || p.units[v].to != pos || external[u] != nil || external[v] != nil {
			continue
		}
		if p.reads(b, pos, u, m) || p.reads(b, pos, v, m) {
			continue
		}
		if mem := external[w]; mem != nil {
			external[u] = mem
			delete(external, w)
		}
		m.into(v, u)
		m.into(w, u)
		p.units[u].to = p.units[w].to
		late.accumulate = true
		sum.alias, sum.source = true, b
	}
}

// computedAt returns the place of the op that an entry's value comes from.
func (p *plan) computedAt(i int) int {
	for p.entries[i].alias {
		i = p.entries[i].source
	}
	return i
}

// reads says whether an op in [from, to) reads unit u.
func (p *plan) reads(from, to, u int, m *merged) bool {
	for i := from; i < to; i++ {
		if p.entries[i].alias {
			continue
		}
		for _, j := range p.entries[i].in {
			if p.entries[j].touches(u, m) {
				return true
			}
		}
	}
	return false
}

// isSum says whether an op adds its two operands element by element.
func isSum(o gorgonia.Op) bool {
	s, ok := o.(Summer)
	return ok && s.Sum() || isAdd(o)
}
