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

// Machine is a compiled graph.
type Machine struct {
	cfg     Config
	plan    *plan
	arena   []float32
	scratch []float32
	inputs  map[int64]*inputSlot
	views   []*inputSlot // for each entry that is an input or an alias of one
	prog    []instruction
	prof    profile
}

var _ gorgonia.VM = (*Machine)(nil)

type instruction struct {
	step Step
	call *Call
	node *gorgonia.Node
	kind int           // index into profile.kinds
	time time.Duration // of all runs since ResetProfile
	// exposed are the auxiliary results that other nodes name.
	exposed []Array
}

// inputSlot is a graph input and the calls that read it.
type inputSlot struct {
	node  *gorgonia.Node
	array Array
	bound bool // by SetInput, which goes before a value of the node's own
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
	p, err := newPlan(g, cfg)
	if err != nil {
		return nil, err
	}
	if need := 4 * int64(p.arena); cfg.MaxBytes > 0 && need > cfg.MaxBytes {
		return nil, &MemoryError{Need: need, Max: cfg.MaxBytes}
	}
	m := &Machine{cfg: cfg, plan: p, inputs: map[int64]*inputSlot{}, prof: newProfile()}
	m.views = make([]*inputSlot, len(p.entries))
	m.arena = alignedFloats(p.arena)
	arrays := make([]Array, len(p.entries))
	auxes := make([][]Array, len(p.entries))
	maker := make([]int, len(p.entries)) // the instruction that runs an entry
	need := 0
	for i, e := range p.entries {
		if e.input {
			m.views[i] = &inputSlot{node: e.node, array: Array{Shape: e.out.shape}}
			m.inputs[e.node.ID()] = m.views[i]
			continue
		}
		if e.alias && e.out.unit < 0 {
			m.views[i] = m.views[e.source]
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
			if e.exposes {
				in := &m.prog[maker[e.source]]
				in.exposed = append(in.exposed, arrays[i])
			}
			continue
		}
		c := &Call{Engine: cfg.Engine, Out: arrays[i], Aux: auxes[i], Accumulate: e.accumulate}
		shapes := make([]tensor.Shape, len(e.in))
		for k, j := range e.in {
			c.In = append(c.In, arrays[j])
			c.InAux = append(c.InAux, auxes[j])
			shapes[k] = p.entries[j].out.shape
			if slot := m.views[j]; slot != nil {
				c.In[k].Shape = shapes[k]
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
		maker[i] = len(m.prog)
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
	if err := slot.set(data); err != nil {
		return err
	}
	slot.bound = true
	return nil
}

// set points the slot and all its uses to data, or changes nothing if it does not fit.
func (s *inputSlot) set(data any) error {
	f32, isFloat := data.([]float32)
	i32, isInt := data.([]int32)
	wantInt := s.node.Dtype() == tensor.Int32
	if wantInt && !isInt || !wantInt && !isFloat {
		return fmt.Errorf("exec: input %s wants %v (got %T)", s.node.Name(), s.node.Dtype(), data)
	}
	if got, want := len(f32)+len(i32), s.array.Len(); got != want {
		return fmt.Errorf("exec: input %s has %d elements (got %d)", s.node.Name(), want, got)
	}
	s.array.F32, s.array.I32 = f32, i32
	for _, u := range s.uses {
		in := &u.call.In[u.operand]
		in.F32, in.I32 = f32, i32
	}
	return nil
}

// SetShadow tells the ops that read a graph input of a bfloat16 copy of its values,
// which is read at every run; nil takes it away. The caller keeps it in step with
// the input's values. Like SetInput it reaches all uses, also those under another
// shape, ignores inputs that no output depends on and allocates nothing.
func (m *Machine) SetShadow(n *gorgonia.Node, bf16 []uint16) error {
	slot := m.inputs[n.ID()]
	switch {
	case slot == nil:
		return nil
	case bf16 == nil:
	case slot.node.Dtype() != tensor.Float32:
		return fmt.Errorf("exec: input %s is %v: only float32 has a bfloat16 copy", slot.node.Name(), slot.node.Dtype())
	case len(bf16) != slot.array.Len():
		return fmt.Errorf("exec: input %s has %d elements, its bfloat16 copy %d", slot.node.Name(), slot.array.Len(), len(bf16))
	}
	slot.array.BF16 = bf16
	for _, u := range slot.uses {
		u.call.In[u.operand].BF16 = bf16
	}
	return nil
}

// RunAll computes the outputs. Inputs without a bound value are taken from the
// values that gorgonia.Let gave their nodes.
func (m *Machine) RunAll() error {
	for _, s := range m.inputs {
		if !s.bound {
			if err := s.let(); err != nil {
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
		spent := time.Since(start)
		in.time += spent
		m.prof.spend(in.kind, spent)
		if m.cfg.CheckNaN {
			if err := checkFinite(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// let takes the value that gorgonia.Let gave the node.
func (s *inputSlot) let() error {
	v := s.node.Value()
	if v == nil {
		return fmt.Errorf("exec: input %s has no value", s.node.Name())
	}
	switch d := v.Data().(type) {
	case float32:
		return s.set([]float32{d})
	case int32:
		return s.set([]int32{d})
	default:
		return s.set(d)
	}
}

// Value returns the value of an output or of an input. The memory belongs to the
// machine and is overwritten by the next run.
func (m *Machine) Value(n *gorgonia.Node) (Array, error) {
	i, ok := m.plan.index[n.ID()]
	switch {
	case ok && m.views[i] != nil:
		a := m.views[i].array
		a.Shape = m.plan.entries[i].out.shape
		return a, nil
	case !ok || !m.plan.outputs[i]:
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
