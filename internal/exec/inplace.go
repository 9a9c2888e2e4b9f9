package exec

import "gorgonia.org/gorgonia"

// merged says which units were given the memory of another.
type merged struct{ redirect []int }

func newMerged(units int) *merged {
	m := &merged{redirect: make([]int, units)}
	for i := range m.redirect {
		m.redirect[i] = i
	}
	return m
}

// find returns the unit whose memory u has.
func (m *merged) find(u int) int {
	for m.redirect[u] != u {
		u = m.redirect[u]
	}
	return u
}

// into gives u the memory of v.
func (m *merged) into(u, v int) { m.redirect[u] = v }

// touches says whether a reader of the entry reads unit u, which has memory of its own.
func (e *entry) touches(u int, m *merged) bool {
	if e.out.unit >= 0 && m.find(e.out.unit) == u {
		return true
	}
	for _, a := range e.aux {
		if m.find(a.unit) == u {
			return true
		}
	}
	return false
}

// inPlace lets an op write over an operand that dies with it, by merging the
// output's unit into the operand's. A bound output passes its memory on to the
// operand, so that sums of gradients accumulate where they are wanted.
func (p *plan) inPlace(external map[int][]float32, m *merged) {
	for pos, e := range p.entries {
		if e.input || e.alias || e.consts != nil || e.accumulate {
			continue
		}
		out := m.find(e.out.unit)
		for _, operand := range inPlaceOperands(e.node.Op()) {
			src := p.entries[e.in[operand]]
			if src.input || src.consts != nil || src.out.unit < 0 || src.out.ints != e.out.ints {
				continue
			}
			u := m.find(src.out.unit)
			if u == out || p.units[u].to != pos || p.units[u].size != p.units[out].size ||
				p.units[u].half != p.units[out].half {
				continue
			}
			if external[u] != nil {
				continue // somebody else's memory
			}
			if p.readsTwice(e, operand, u, m) {
				continue
			}
			if mem := external[out]; mem != nil {
				external[u] = mem
				delete(external, out)
			}
			m.into(out, u)
			p.units[u].to = p.units[out].to
			break
		}
	}
}

// readsTwice says whether an op reads unit u through anything but one operand: an
// alias of it under another shape may be read in another order than it is written.
func (p *plan) readsTwice(e entry, operand, u int, m *merged) bool {
	for k, j := range e.in {
		in := p.entries[j]
		if k == operand {
			in.out.unit = -1 // its auxiliary results still count
		}
		if in.touches(u, m) {
			return true
		}
	}
	return false
}

// resolve makes every result name the unit that it was merged into.
func (p *plan) resolve(m *merged) {
	for i := range p.entries {
		e := &p.entries[i]
		if e.out.unit >= 0 {
			e.out.unit = m.find(e.out.unit)
		}
		for k := range e.aux {
			e.aux[k].unit = m.find(e.aux[k].unit)
		}
	}
	for u := range p.units { // merged units need no room
		if m.find(u) != u {
			p.units[u].size = 0
		}
	}
}

func inPlaceOperands(o gorgonia.Op) []int {
	if i, ok := o.(InPlacer); ok {
		return i.InPlace()
	}
	if isAdd(o) {
		return []int{0, 1}
	}
	return nil
}
