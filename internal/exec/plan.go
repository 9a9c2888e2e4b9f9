package exec

import (
	"fmt"
	"slices"
	"sort"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A unit is a piece of memory with a lifetime, measured in program positions.
// Several results share one unit when an op works in place.
type unit struct {
	size     int // float32 or int32 elements
	from, to int // first and last position that touches it
	external []float32
	offset   int // in the arena, if not external
}

// result locates a node's output or one of its auxiliary results.
type result struct {
	unit  int // -1: a graph input, bound by the caller
	shape tensor.Shape
	ints  bool
}

// entry is what the plan knows about one node.
type entry struct {
	node   *gorgonia.Node
	in     []int // entries of the operands
	out    result
	aux    []result
	alias  bool // never run
	source int  // entry that an alias names
	// exposes marks an alias of an auxiliary result.
	exposes bool
	input   bool
	consts  gorgonia.Value
}

// plan orders the nodes that outputs depend on and lays out their memory.
type plan struct {
	entries []entry
	index   map[int64]int // node id to entry
	outputs map[int]bool  // entries whose values outlive a run
	units   []unit
	arena   int // elements
}

// align is the granularity of the arena in elements: a cache line.
const align = 16

func newPlan(g *gorgonia.ExprGraph, outputs gorgonia.Nodes, bind map[*gorgonia.Node][]float32) (*plan, error) {
	nodes := reachable(g, outputs)
	p := &plan{index: make(map[int64]int, len(nodes)), outputs: make(map[int]bool, len(outputs))}
	for i, n := range nodes {
		p.index[n.ID()] = i
	}
	for pos, n := range nodes {
		e, err := p.entry(g, n, pos)
		if err != nil {
			return nil, err
		}
		p.entries = append(p.entries, e)
	}
	p.lifetimes(outputs)
	external, err := p.bind(bind)
	if err != nil {
		return nil, err
	}
	p.inPlace(external)
	for r, mem := range external {
		p.units[r].external = mem
	}
	p.layout()
	return p, nil
}

// reachable returns the nodes that outputs depend on in the order in which they
// were made, which is a topological order: an op's operands exist before it. It
// also keeps a gradient near the moment it is consumed, which Gorgonia's own sort
// does not.
func reachable(g *gorgonia.ExprGraph, outputs gorgonia.Nodes) gorgonia.Nodes {
	seen := map[int64]bool{}
	var nodes gorgonia.Nodes
	stack := slices.Clone(outputs)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n.ID()] {
			continue
		}
		seen[n.ID()] = true
		nodes = append(nodes, n)
		stack = append(stack, operands(g, n)...)
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].ID() < nodes[j].ID() })
	return nodes
}

// operands returns a node's operands in order. An operand used twice is listed twice.
func operands(g *gorgonia.ExprGraph, n *gorgonia.Node) gorgonia.Nodes {
	it := g.From(n.ID())
	if it == nil {
		return nil
	}
	var in gorgonia.Nodes
	for it.Next() {
		in = append(in, it.Node().(*gorgonia.Node))
	}
	return in
}

func (p *plan) entry(g *gorgonia.ExprGraph, n *gorgonia.Node, pos int) (entry, error) {
	e := entry{node: n, out: result{unit: -1, shape: n.Shape(), ints: n.Dtype() == tensor.Int32}}
	if dt := n.Dtype(); dt != tensor.Float32 && dt != tensor.Int32 {
		return e, fmt.Errorf("exec: node %v has type %v: only float32 and int32 run here", n, dt)
	}
	ops := operands(g, n)
	switch {
	case n.Op() == nil:
		e.input = true
		return e, nil
	case len(ops) == 0: // a constant holds its value in the op
		v, err := n.Op().Do()
		if err != nil {
			return e, fmt.Errorf("exec: constant %v: %w", n, err)
		}
		e.consts = v
		e.out.unit = p.newUnit(e.out.shape.TotalSize(), 0)
		return e, nil
	}
	shapes := make([]tensor.Shape, len(ops))
	for i, c := range ops {
		j, ok := p.index[c.ID()]
		if !ok || j >= pos {
			return e, fmt.Errorf("exec: node %v comes before its operand %v", n, c)
		}
		e.in = append(e.in, j)
		shapes[i] = p.entries[j].out.shape
	}
	if a, ok := n.Op().(Aliaser); ok {
		if operand, aux, ok := a.Alias(); ok {
			e.alias, e.source = true, e.in[operand]
			src := p.entries[e.source].out
			if aux >= 0 {
				if aux >= len(p.entries[e.source].aux) {
					return e, fmt.Errorf("exec: %v: its operand has no auxiliary result %d", n, aux)
				}
				src, e.exposes = p.entries[e.source].aux[aux], true
			}
			if src.shape.TotalSize() != e.out.shape.TotalSize() {
				return e, fmt.Errorf("exec: %v: alias of shape %v as %v", n, src.shape, e.out.shape)
			}
			e.out.unit = src.unit
			return e, nil
		}
	}
	e.out.unit = p.newUnit(e.out.shape.TotalSize(), pos)
	if a, ok := n.Op().(Auxer); ok {
		for _, s := range a.Aux(shapes) {
			e.aux = append(e.aux, result{unit: p.newUnit(s.Shape.TotalSize(), pos), shape: s.Shape, ints: s.Int})
		}
	}
	return e, nil
}

func (p *plan) newUnit(size, pos int) int {
	p.units = append(p.units, unit{size: size, from: pos, to: pos})
	return len(p.units) - 1
}

// lifetimes stretches each unit to the last position that reads it.
func (p *plan) lifetimes(outputs gorgonia.Nodes) {
	touch := func(u, pos int) {
		if u >= 0 {
			p.units[u].to = max(p.units[u].to, pos)
		}
	}
	for pos, e := range p.entries {
		for _, j := range e.in {
			touch(p.entries[j].out.unit, pos)
			for _, a := range p.entries[j].aux {
				touch(a.unit, pos)
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
			return nil, fmt.Errorf("exec: cannot bind %v: it is no computed result of its own", n)
		case len(mem) != p.units[out.unit].size:
			return nil, fmt.Errorf("exec: bound memory of %v has %d elements, the node %d", n, len(mem), p.units[out.unit].size)
		case external[out.unit] != nil:
			return nil, fmt.Errorf("exec: two bound nodes share the result of %v", n)
		}
		external[out.unit] = mem
	}
	return external, nil
}

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

// layout gives every unit an offset such that no two units that live at the same
// time overlap: largest first, each at the lowest place that is free throughout
// its life (the greedy-by-size strategy of Pisarchyk and Lee 2020).
func (p *plan) layout() {
	var order []int
	for i, u := range p.units {
		if u.size > 0 && u.external == nil {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return p.units[order[a]].size > p.units[order[b]].size })
	var placed []int // by offset
	for _, i := range order {
		u := &p.units[i]
		need := (u.size + align - 1) / align * align
		best, at := -1, 0
		for _, j := range placed {
			v := p.units[j]
			if v.to < u.from || u.to < v.from {
				continue
			}
			if v.offset >= at+need {
				best = at
				break
			}
			at = max(at, v.offset+(v.size+align-1)/align*align)
		}
		if best < 0 {
			best = at
		}
		u.offset = best
		p.arena = max(p.arena, best+need)
		k := sort.Search(len(placed), func(k int) bool { return p.units[placed[k]].offset >= best })
		placed = slices.Insert(placed, k, i)
	}
}
