package exec

import "gorgonia.org/gorgonia"

// inPlace lets an op write over an operand that dies with it, by merging the
// output's unit into the operand's. A bound output passes its memory on to the
// operand, so that sums of gradients accumulate where they are wanted.
func (p *plan) inPlace(external map[int][]float32) {
	redirect := make([]int, len(p.units))
	for i := range redirect {
		redirect[i] = i
	}
	find := func(u int) int {
		for redirect[u] != u {
			u = redirect[u]
		}
		return u
	}
	for pos, e := range p.entries {
		if e.input || e.alias || e.consts != nil {
			continue
		}
		out := find(e.out.unit)
		for _, operand := range inPlaceOperands(e.node.Op()) {
			src := p.entries[e.in[operand]]
			if src.input || src.consts != nil || src.out.unit < 0 || src.out.ints != e.out.ints {
				continue
			}
			u := find(src.out.unit)
			if u == out || p.units[u].to != pos || p.units[u].size != p.units[out].size {
				continue
			}
			if external[u] != nil {
				continue // somebody else's memory
			}
			if p.readsTwice(e, operand, u, find) {
				continue
			}
			if mem := external[out]; mem != nil {
				external[u] = mem
				delete(external, out)
			}
			redirect[out] = u
			p.units[u].to = p.units[out].to
			break
		}
	}
	for i := range p.entries {
		e := &p.entries[i]
		if e.out.unit >= 0 {
			e.out.unit = find(e.out.unit)
		}
		for k := range e.aux {
			e.aux[k].unit = find(e.aux[k].unit)
		}
	}
	for u := range p.units { // merged units need no room
		if find(u) != u {
			p.units[u].size = 0
		}
	}
}

// readsTwice says whether an op reads unit u through anything but one operand: an
// alias of it under another shape may be read in another order than it is written.
func (p *plan) readsTwice(e entry, operand, u int, find func(int) int) bool {
	for k, j := range e.in {
		in := p.entries[j]
		if k != operand && in.out.unit >= 0 && find(in.out.unit) == u {
			return true
		}
		for _, a := range in.aux {
			if find(a.unit) == u {
				return true
			}
		}
	}
	return false
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
