package exec

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A unit is a piece of memory with a lifetime, measured in program positions.
// Several results share one unit when an op works in place.
type unit struct {
	size     int  // float32 or int32 elements
	half     bool // holds bfloat16, two to an element
	from, to int  // first and last position that touches it
	external []float32
	lent     bool // lies in Config.Lend
	offset   int  // there or in the arena, if not external
}

// result locates a node's output or one of its auxiliary results.
type result struct {
	unit  int // -1: a graph input, bound by the caller
	shape tensor.Shape
	ints  bool
}

// entry is what the plan knows about one node.
type entry struct {
	node *gorgonia.Node
	in   []int // entries of the operands
	out  result
	aux  []result
	// Of the output and the auxiliary results: their shadows, of unit -1 where there is none; nil: nowhere. Of the
	// operands: the unit of the shadow that is read instead, -1: none; nil: of no operand.
	shadows []result
	shaded  []int
	alias   bool // never run
	source  int  // entry that an alias names
	// exposes marks an alias of an auxiliary result.
	exposes bool
	// spared: the op does without its auxiliary results.
	spared bool
	// accumulate: the op adds to what its memory holds.
	accumulate bool
	scratch    int // elements
	// Of an op with a computation of its own: the plan of that, and the part of the
	// scratch that is the op's.
	inner  *plan
	own    int
	input  bool
	consts gorgonia.Value
}

// plan orders the nodes that outputs depend on and lays out their memory.
type plan struct {
	entries []entry
	index   map[int64]int // node id to entry
	outputs map[int]bool  // entries whose values outlive a run
	// complete is when bound nodes are, the first ones first.
	complete []completion
	units    []unit
	lent     Lent
	borrowed int    // elements of it that results lie in at some time
	arena    int    // elements
	scratch  int    // elements that the op with the largest need works on
	device   string // the name of that which the plan is for, empty: the host
}

// align is the granularity of the arena in elements: a cache line.
const align = 16

func newPlan(g *gorgonia.ExprGraph, cfg Config) (*plan, error) {
	items, err := program(g, cfg.Outputs)
	if err != nil {
		return nil, err
	}
	keep := map[int64]bool{}
	for _, n := range cfg.Outputs {
		keep[n.ID()] = true
	}
	for n := range cfg.Bind {
		keep[n.ID()] = true
	}
	device := ""
	if cfg.Device != nil {
		device = cfg.Device.Name()
	}
	items = remake(items, keep, cfg.Engine.BF16(), device)
	if items, err = cfg.Recompute.repeat(items, keep); err != nil {
		return nil, err
	}
	p := &plan{index: make(map[int64]int, len(items)), outputs: make(map[int]bool, len(cfg.Outputs))}
	if cfg.Device != nil {
		p.device = cfg.Device.Name()
	}
	for pos, it := range items {
		e, err := p.entry(it, pos, cfg)
		if err != nil {
			return nil, err
		}
		p.entries = append(p.entries, e)
		p.scratch = max(p.scratch, e.scratch)
		if _, again := p.index[it.node.ID()]; !again {
			p.index[it.node.ID()] = pos
		}
	}
	p.lifetimes(cfg.Outputs)
	external, err := p.bind(cfg.Bind)
	if err != nil {
		return nil, err
	}
	if cfg.Engine.BF16() {
		p.halve(external, cfg.Engine.Threads())
	}
	m := newMerged(len(p.units))
	p.accumulate(external, m)
	p.inPlace(external, m)
	p.resolve(m)
	if _, ok := cfg.Device.(Rounder); ok && cfg.Engine.BF16() && p.shadow() {
		p.lifetimes(cfg.Outputs)
	}
	for r, mem := range external {
		p.units[r].external = mem
	}
	p.completions(cfg.Bind)
	p.lent = cfg.lend()
	p.layout(p.borrow(p.lent, cfg.Lend))
	p.borrowed = p.inLent()
	return p, nil
}

// entry makes the results of the item at pos.
func (p *plan) entry(it item, pos int, cfg Config) (entry, error) {
	n := it.node
	e := entry{node: n, in: it.in, out: result{unit: -1, shape: n.Shape(), ints: n.Dtype() == tensor.Int32}}
	if dt := n.Dtype(); dt != tensor.Float32 && dt != tensor.Int32 {
		return e, fmt.Errorf("exec: node %v has type %v: only float32 and int32 run here", n, dt)
	}
	switch {
	case it.isInput():
		e.input = true
		return e, nil
	case it.isConstant():
		v, err := n.Op().Do()
		if err != nil {
			return e, fmt.Errorf("exec: constant %v: %w", n, err)
		}
		e.consts = v
		e.out.unit = p.newUnit(e.out.shape.TotalSize(), 0)
		return e, nil
	}
	shapes := p.shapes(&e)
	if operand, aux, ok := aliasOf(n); ok {
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
	e.out.unit = p.newUnit(e.out.shape.TotalSize(), pos)
	e.spared = cfg.Forward && sparesAux(n.Op())
	if a, ok := n.Op().(Auxer); ok && !e.spared {
		for _, s := range a.Aux(shapes) {
			e.aux = append(e.aux, result{unit: p.newUnit(s.Shape.TotalSize(), pos), shape: s.Shape, ints: s.Int})
		}
	}
	if s, ok := n.Op().(Scratcher); ok {
		e.scratch = s.Scratch(shapes, cfg.Engine.Threads())
	}
	return e, p.nested(&e, cfg)
}

func sparesAux(o gorgonia.Op) bool {
	s, ok := o.(Sparer)
	return ok && s.SparesAux()
}

// shapes returns those of the operands.
func (p *plan) shapes(e *entry) []tensor.Shape {
	shapes := make([]tensor.Shape, len(e.in))
	for i, j := range e.in {
		shapes[i] = p.entries[j].out.shape
	}
	return shapes
}

// bytes returns the memory that the machine will hold.
func (p *plan) bytes() int64 { return 4 * int64(p.arena+p.scratch) }

func (p *plan) newUnit(size, pos int) int {
	p.units = append(p.units, unit{size: size, from: pos, to: pos})
	return len(p.units) - 1
}
