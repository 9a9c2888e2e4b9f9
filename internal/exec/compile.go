package exec

import (
	"errors"
	"fmt"
	"time"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/memory"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Config says what to compile.
type Config struct {
	// Engine runs the kernels.
	Engine *kernel.Engine
	// Outputs are the nodes to compute. Their values are valid after a run.
	Outputs gorgonia.Nodes
	// Bind gives memory of the caller's to some of the outputs, which are then
	// written there, such as gradients into one flat buffer.
	Bind map[*gorgonia.Node][]float32
	// Recompute trades time for memory: parts of the forward pass that are computed
	// again for the backward pass. The zero value keeps everything.
	Recompute Recompute
	// MaxBytes refuses, with a *MemoryError, a plan whose results need more memory;
	// 0 refuses none.
	MaxBytes int64
	// CheckNaN looks at every result and stops at the first op that makes a NaN
	// or an infinity out of finite operands. Slow.
	CheckNaN bool
}

// instruction is one op in the program of a machine.
type instruction struct {
	step  Step
	call  *Call
	node  *gorgonia.Node
	place int           // in the plan
	kind  int           // index into profile.kinds
	time  time.Duration // of all runs since ResetProfile
	// exposed are the auxiliary results that other nodes name.
	exposed []Array
}

// Compile plans the graph and prepares every op.
func Compile(g *gorgonia.ExprGraph, cfg Config) (*Machine, error) {
	switch {
	case cfg.Engine == nil:
		return nil, errors.New("exec: no engine to run on")
	case len(cfg.Outputs) == 0:
		return nil, errors.New("exec: no outputs to compute")
	}
	p, err := newPlan(g, cfg)
	if err != nil {
		return nil, err
	}
	if need := p.bytes(); cfg.MaxBytes > 0 && need > cfg.MaxBytes {
		return nil, &MemoryError{Need: need, Max: cfg.MaxBytes}
	}
	m := &Machine{
		cfg: cfg, plan: p, arena: memory.Floats(p.arena), scratch: memory.Floats(p.scratch),
		inputs: map[int64]*inputSlot{}, views: make([]*inputSlot, len(p.entries)), prof: newProfile(),
	}
	b := builder{
		Machine: m, maker: make([]int, len(p.entries)),
		arrays: make([]Array, len(p.entries)), auxes: make([][]Array, len(p.entries)),
	}
	for i := range p.entries {
		if err := b.entry(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// builder is what Compile keeps in mind of the entries before the one at hand.
type builder struct {
	*Machine
	arrays []Array   // results; without memory for an input
	auxes  [][]Array // auxiliary results
	maker  []int     // the instruction that computes an entry
}

// entry makes what entry i of the plan takes: a slot, the value of a constant, or an
// instruction.
func (b *builder) entry(i int) error {
	e := &b.plan.entries[i]
	switch {
	case e.input:
		b.views[i] = &inputSlot{node: e.node, array: Array{Shape: e.out.shape}}
		b.inputs[e.node.ID()] = b.views[i]
		return nil
	case e.alias && e.out.unit < 0:
		b.views[i] = b.views[e.source]
		return nil
	}
	b.arrays[i] = b.array(e.out)
	for _, a := range e.aux {
		b.auxes[i] = append(b.auxes[i], b.array(a))
	}
	switch {
	case e.consts != nil:
		if err := fill(b.arrays[i], e.consts); err != nil {
			return fmt.Errorf("exec: constant %v: %w", e.node, err)
		}
		return nil
	case e.alias:
		if e.exposes {
			in := &b.prog[b.maker[e.source]]
			in.exposed = append(in.exposed, b.arrays[i])
		}
		return nil
	}
	return b.instruction(i)
}

// instruction prepares the op of entry i.
func (b *builder) instruction(i int) error {
	e := &b.plan.entries[i]
	c := &Call{
		Engine: b.cfg.Engine, Out: b.arrays[i], Aux: b.auxes[i], Accumulate: e.accumulate,
		Scratch: b.scratch[:e.scratch:e.scratch],
	}
	shapes := make([]tensor.Shape, len(e.in))
	for k, j := range e.in {
		shapes[k] = b.plan.entries[j].out.shape
		c.In = append(c.In, b.arrays[j])
		c.InAux = append(c.InAux, b.auxes[j])
		if slot := b.views[j]; slot != nil {
			c.In[k].Shape = shapes[k]
			slot.uses = append(slot.uses, inputUse{c, k})
		}
	}
	step, err := prepare(e.node.Op(), c)
	if err != nil {
		return fmt.Errorf("exec: %v: %w", e.node, err)
	}
	b.maker[i] = len(b.prog)
	b.prog = append(b.prog, instruction{step: step, call: c, node: e.node, place: i, kind: b.prof.add(e.node.Op(), shapes)})
	return nil
}
