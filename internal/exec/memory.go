package exec

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gorgonia.org/gorgonia"
)

// lifetimes stretches each unit to the last position that writes or reads it. An auxiliary result that may be
// bfloat16 is read through a node of its own (see HalfWriter), any other one wherever the output is.
func (p *plan) lifetimes(outputs gorgonia.Nodes) {
	touch := func(u, pos int) {
		if u >= 0 {
			p.units[u].to = max(p.units[u].to, pos)
		}
	}
	for i := range p.units {
		p.units[i].to = p.units[i].from
	}
	for pos := range p.entries {
		e := &p.entries[pos]
		for _, r := range e.results() {
			touch(r.unit, pos)
		}
		for operand, j := range e.in {
			if u := e.shadowOf(operand); u >= 0 {
				touch(u, pos)
			} else {
				touch(p.entries[j].out.unit, pos)
			}
			for k, a := range p.entries[j].aux {
				if e.alias || !p.writesHalf(p.entries[j].node.Op(), k) {
					touch(a.unit, pos)
				}
			}
		}
	}
	end := len(p.entries)
	for _, n := range outputs {
		i := p.index[n.ID()]
		p.outputs[i] = true
		touch(p.entries[i].out.unit, end)
	}
	for _, e := range p.entries {
		if e.consts != nil { // written once, at compile time
			p.units[e.out.unit].from, p.units[e.out.unit].to = 0, end
		}
	}
}

// bind attaches caller memory to outputs.
func (p *plan) bind(bind map[*gorgonia.Node][]float32) (map[int][]float32, error) {
	external := map[int][]float32{}
	for n, mem := range bind {
		i, ok := p.index[n.ID()]
		if !ok {
			return nil, fmt.Errorf("exec: bound node %v is not needed by any output", n)
		}
		out := p.entries[i].out
		switch {
		case out.unit < 0 || p.entries[i].consts != nil || p.entries[i].alias && external[out.unit] != nil:
			return nil, fmt.Errorf("exec: cannot bind %v: it is not a computed result of its own", n)
		case len(mem) != p.units[out.unit].size:
			return nil, fmt.Errorf("exec: bound memory of %v has %d elements, the node %d", n, len(mem),
				p.units[out.unit].size)
		case external[out.unit] != nil:
			return nil, fmt.Errorf("exec: two bound nodes share the result of %v", n)
		}
		external[out.unit] = mem
	}
	return external, nil
}

// layout gives every unit an offset such that no two units that live at the same
// time overlap: largest first, each at the lowest place that is free throughout
// its life (the greedy-by-size strategy of Pisarchyk and Lee 2020), in memory that is lent if there is one, else in the
// arena.
func (p *plan) layout(lent *space) {
	var order []int
	for i, u := range p.units {
		if u.size > 0 && u.external == nil {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return p.units[order[a]].size > p.units[order[b]].size })
	arena := &space{limit: math.MaxInt}
	for _, i := range order {
		u := &p.units[i]
		if u.lent = lent.place(u); !u.lent {
			arena.place(u)
			p.arena = max(p.arena, u.offset+aligned(u.size))
		}
	}
}

// space is memory that units are placed in.
type space struct {
	pieces []piece // by offset
	limit  int     // elements
}

// piece is a part of a space that is taken for some time.
type piece struct{ offset, end, from, to int }

// place gives a unit the lowest place that is free throughout its life, false if there is none.
func (s *space) place(u *unit) bool {
	need, at := aligned(u.size), 0
	for _, v := range s.pieces {
		if v.to < u.from || u.to < v.from {
			continue
		}
		if v.offset >= at+need {
			break
		}
		at = max(at, aligned(v.end))
	}
	if at > s.limit-need {
		return false
	}
	u.offset = at
	k := sort.Search(len(s.pieces), func(k int) bool { return s.pieces[k].offset >= at })
	s.pieces = slices.Insert(s.pieces, k, piece{at, at + u.size, u.from, u.to})
	return true
}
