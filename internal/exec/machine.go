package exec

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel"
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
	// CheckNaN looks at every result and stops at the first op that makes a NaN
	// or an infinity out of finite operands. Slow.
	CheckNaN bool
}

// Machine is a compiled graph.
type Machine struct {
	cfg     Config
	plan    *plan
	arena   []float32
	scratch []float32
	inputs  map[int64]*inputSlot
	prog    []instruction
	prof    profile
}

var _ gorgonia.VM = (*Machine)(nil)

type instruction struct {
	step Step
	call *Call
	node *gorgonia.Node
	kind int // index into profile.kinds
}

// inputSlot is a graph input and the calls that read it.
type inputSlot struct {
	node  *gorgonia.Node
	array Array
	uses  []inputUse
}

type inputUse struct {
	call    *Call
	operand int
}

// Compile plans the graph and prepares every op.
func Compile(g *gorgonia.ExprGraph, cfg Config) (*Machine, error) {
	if len(cfg.Outputs) == 0 {
		return nil, errors.New("exec: no outputs to compute")
	}
	p, err := newPlan(g, cfg.Outputs, cfg.Bind)
	if err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, plan: p, inputs: map[int64]*inputSlot{}, prof: newProfile()}
	m.arena = alignedFloats(p.arena)
	arrays := make([]Array, len(p.entries))
	auxes := make([][]Array, len(p.entries))
	need := 0
	for i, e := range p.entries {
		if e.input {
			m.inputs[e.node.ID()] = &inputSlot{node: e.node, array: Array{Shape: e.out.shape}}
			continue
		}
		arrays[i] = m.array(e.out)
		for _, a := range e.aux {
			auxes[i] = append(auxes[i], m.array(a))
		}
		if e.consts != nil {
			if err := fill(arrays[i], e.consts); err != nil {
				return nil, fmt.Errorf("exec: constant %v: %w", e.node, err)
			}
			continue
		}
		if e.alias {
			if s := p.entries[e.in[0]]; s.input {
				return nil, fmt.Errorf("exec: %v renames a graph input: reshape the input itself", e.node)
			}
			continue
		}
		c := &Call{Engine: cfg.Engine, Out: arrays[i], Aux: auxes[i]}
		shapes := make([]tensor.Shape, len(e.in))
		for k, j := range e.in {
			c.In = append(c.In, arrays[j])
			c.InAux = append(c.InAux, auxes[j])
			shapes[k] = p.entries[j].out.shape
			if slot := m.inputs[p.entries[j].node.ID()]; slot != nil {
				c.In[k] = slot.array
				slot.uses = append(slot.uses, inputUse{c, k})
			}
		}
		var scratch int
		if s, ok := e.node.Op().(Scratcher); ok {
			scratch = s.Scratch(shapes, cfg.Engine.Threads())
			need = max(need, scratch)
		}
		step, err := prepare(e.node.Op(), c)
		if err != nil {
			return nil, fmt.Errorf("exec: %v: %w", e.node, err)
		}
		m.prog = append(m.prog, instruction{step: step, call: c, node: e.node, kind: m.prof.add(e.node.Op(), shapes)})
		c.scratchLen = scratch
	}
	m.scratch = alignedFloats(need)
	for _, in := range m.prog {
		in.call.Scratch = m.scratch[:in.call.scratchLen:in.call.scratchLen]
	}
	return m, nil
}

// array returns the view of a computed result.
func (m *Machine) array(r result) Array {
	u := m.plan.units[r.unit]
	n := r.shape.TotalSize()
	mem := u.external
	if mem == nil {
		mem = m.arena[u.offset : u.offset+n : u.offset+n]
	}
	if r.ints {
		return Array{Shape: r.shape, I32: asInts(mem)}
	}
	return Array{Shape: r.shape, F32: mem}
}

// SetInput binds a graph input to the caller's memory: []float32 or []int32, which
// is read at every run and never written. It allocates nothing.
func (m *Machine) SetInput(n *gorgonia.Node, data any) error {
	slot := m.inputs[n.ID()]
	if slot == nil {
		return nil // no output depends on it
	}
	var length int
	switch d := data.(type) {
	case []float32:
		slot.array.F32, length = d, len(d)
	case []int32:
		slot.array.I32, length = d, len(d)
	default:
		return fmt.Errorf("exec: input %s: cannot bind %T", n.Name(), data)
	}
	if isInt := n.Dtype() == tensor.Int32; isInt != (slot.array.I32 != nil) {
		return fmt.Errorf("exec: input %s wants %v (got %T)", n.Name(), n.Dtype(), data)
	}
	if want := slot.array.Len(); length != want {
		return fmt.Errorf("exec: input %s has %d elements (got %d)", n.Name(), want, length)
	}
	for _, u := range slot.uses {
		u.call.In[u.operand] = slot.array
	}
	return nil
}

// RunAll computes the outputs. Inputs without a bound value are taken from the
// values that gorgonia.Let gave their nodes.
func (m *Machine) RunAll() error {
	for _, s := range m.inputs {
		if s.array.F32 == nil && s.array.I32 == nil {
			if err := m.letInput(s); err != nil {
				return err
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.prof.runs++
	for i := range m.prog {
		in := &m.prog[i]
		start := time.Now()
		if err := in.step(); err != nil {
			return fmt.Errorf("exec: %v: %w", in.node, err)
		}
		m.prof.spend(in.kind, time.Since(start))
		if m.cfg.CheckNaN {
			if err := checkFinite(in); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Machine) letInput(s *inputSlot) error {
	v := s.node.Value()
	if v == nil {
		return fmt.Errorf("exec: input %s has no value", s.node.Name())
	}
	switch d := v.Data().(type) {
	case float32:
		return m.SetInput(s.node, []float32{d})
	case int32:
		return m.SetInput(s.node, []int32{d})
	default:
		return m.SetInput(s.node, d)
	}
}

// Value returns the value of an output or of an input. The memory belongs to the
// machine and is overwritten by the next run.
func (m *Machine) Value(n *gorgonia.Node) (Array, error) {
	if s := m.inputs[n.ID()]; s != nil {
		return s.array, nil
	}
	i, ok := m.plan.index[n.ID()]
	if !ok || m.plan.units[m.plan.entries[i].out.unit].to < len(m.plan.entries) {
		return Array{}, fmt.Errorf("exec: %v was not compiled as an output", n)
	}
	return m.array(m.plan.entries[i].out), nil
}

// Scalar returns the value of a scalar output.
func (m *Machine) Scalar(n *gorgonia.Node) (float32, error) {
	a, err := m.Value(n)
	if err != nil {
		return 0, err
	}
	if len(a.F32) != 1 {
		return 0, fmt.Errorf("exec: %v is no scalar", n)
	}
	return a.F32[0], nil
}

// Reset does nothing: a run starts from its inputs alone.
func (m *Machine) Reset() {}

// Close forgets the program. The engine stays open.
func (m *Machine) Close() error {
	*m = Machine{}
	return nil
}

// Memory returns the bytes of intermediate results and scratch that the machine holds.
func (m *Machine) Memory() int64 { return 4 * int64(len(m.arena)+len(m.scratch)) }

// Nodes returns the number of nodes that run.
func (m *Machine) Nodes() int { return len(m.prog) }

// alignedFloats returns n floats that start on a cache line.
func alignedFloats(n int) []float32 {
	if n == 0 {
		return nil
	}
	b := make([]float32, n+align)
	skip := 0
	if r := uintptr(unsafe.Pointer(&b[0])) % (4 * align); r != 0 {
		skip = int(4*align-r) / 4
	}
	return b[skip : skip+n : skip+n]
}

func asInts(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

// fill copies the value of a constant.
func fill(a Array, v gorgonia.Value) error {
	switch d := v.Data().(type) {
	case float32:
		a.F32[0] = d
	case []float32:
		copy(a.F32, d)
	case int32:
		a.I32[0] = d
	case []int32:
		copy(a.I32, d)
	default:
		return fmt.Errorf("unsupported value %T", d)
	}
	return nil
}
