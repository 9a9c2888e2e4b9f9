package exec

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gorgonia.org/gorgonia"

	"github.com/geoalign/geoalign/internal/cause"
)

// Machine is a compiled graph.
type Machine struct {
	cfg      Config
	plan     *plan
	arena    []float32      // on the host
	memory   Memory         // on a device, else nil
	bound    map[int]Memory // of a device for units in memory of the caller's
	mirrored []Mirrored     // of them, where the caller's memory has a mirror
	handed   map[int]Buffer // in it
	buffers  []Buffer       // for each entry that is computed or constant
	scratch  []float32
	inputs   map[int64]*inputSlot // by node
	views    []*inputSlot         // for each entry that is an input or an alias of one
	prog     []instruction
	prof     profile
	// onComplete is told of bound nodes, nil: nobody is.
	onComplete func(k int)
	// ctx is that of the run, which computations within ops end with.
	ctx context.Context
	// lent: the memory is the scratch of an op or a Room. Constants are written at every run then.
	lent      bool
	constants []constant
	// within: the machine is an op's within another on the same device.
	within bool
	room   *Room    // on a device: whose memory it is
	stored []Buffer // there: the constants
	// On a device: what is recorded, by the first instruction; the exchanges of inputs' buffers so far; and whether
	// every op is waited for.
	sections  map[int]*section
	exchanges int
	stepwise  bool
}

var _ gorgonia.VM = (*Machine)(nil)

// RunAll implements gorgonia.VM: it is Run to the end.
func (m *Machine) RunAll() error { return m.Run(context.Background()) }

// Run computes the outputs. Inputs without a bound value are taken from the
// values that gorgonia.Let gave their nodes. When ctx is done the run ends with its error
// before the next op: the inputs are as they were, the outputs are not of one run.
func (m *Machine) Run(ctx context.Context) error {
	m.prof.runs++
	if m.cfg.Device == nil {
		return m.run(ctx, len(m.prog), m.onComplete)
	}
	bad := m.run(ctx, len(m.prog), nil)
	if bad != nil && !m.cfg.RunOn {
		return bad
	}
	if err := m.hand(); err != nil || m.onComplete == nil {
		return cause.Join(bad, err)
	}
	for k := range m.plan.complete {
		m.onComplete(k)
	}
	return bad
}

// RunTo is Run up to the last of some outputs alone, such as the forward pass of a training
// step. Outputs that come after are not of this run, and bound memory may be or not. It does
// not count as a run in the profile, its time does.
func (m *Machine) RunTo(ctx context.Context, outputs ...*gorgonia.Node) error {
	last := -1
	for _, n := range outputs {
		last = max(last, m.place(n))
	}
	end, _ := slices.BinarySearchFunc(m.prog, last+1, func(in instruction, place int) int { return in.place - place })
	return m.run(ctx, end, nil)
}

// run runs the first n instructions and tells complete, if not nil, of bound nodes.
func (m *Machine) run(ctx context.Context, n int, complete func(k int)) (bad error) {
	k := 0
	for _, s := range m.views {
		if s != nil && !s.bound {
			if err := s.let(); err != nil {
				return err
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if m.memory != nil {
		if err := m.bring(); err != nil {
			return fmt.Errorf("exec: inputs to %s: %w", m.cfg.Device.Name(), err)
		}
	}
	if d, ok := m.cfg.Device.(Borrower); ok {
		defer func() { bad = cause.Join(bad, d.Return()) }()
	}
	m.ctx = ctx
	if err := m.restore(); err != nil {
		return fmt.Errorf("exec: constants: %w", err)
	}
	for _, x := range m.mirrored {
		x.Changed()
	}
	recorder := m.recorder()
	line := m.timeline()
	if line != nil {
		if err := line.Begin(); err != nil {
			return err
		}
		defer func() { bad = cause.Join(bad, m.timed(line)) }()
	}
	if recorder != nil && m.exchanged() {
		if err := errors.Join(m.forget()...); err != nil {
			return err
		}
	}
	for i := 0; i < n; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if recorder != nil {
			if s := m.sectionAt(i, n); s != nil {
				if err := m.play(recorder, i, s); err != nil {
					return err
				}
				i = s.end - 1
				continue
			}
		}
		in := &m.prog[i]
		start := time.Now()
		if err := in.run(); err != nil {
			if !m.cfg.RunOn || !errors.As(err, new(*NonFiniteError)) {
				return err
			}
			if bad == nil { // of a computation within the op
				bad = err
			}
		}
		if line != nil {
			if err := line.Mark(); err != nil {
				return fmt.Errorf("exec: %v: %w", in.node, err)
			}
		} else {
			in.time += time.Since(start)
		}
		if m.cfg.CheckNaN && bad == nil {
			if bad = checkFinite(in); bad != nil && !m.cfg.RunOn {
				return bad
			}
		}
		if complete != nil {
			for range in.completes {
				complete(k)
				k++
			}
		}
	}
	return bad
}

// run makes the step of one op.
func (in *instruction) run() error {
	if err := in.step(); err != nil {
		return fmt.Errorf("exec: %v: %w", in.node, err)
	}
	return nil
}

// wait waits for what the device has been given.
func (m *Machine) wait() error {
	if d, ok := m.cfg.Device.(Waiter); ok {
		return d.Sync()
	}
	return nil
}

// OnHost returns the kinds of the ops that a machine on a device runs on the host, with the number of nodes of each.
func (m *Machine) OnHost() map[string]int {
	kinds := map[string]int{}
	if m.cfg.Device == nil {
		return kinds
	}
	for _, in := range m.prog {
		if !in.onDevice {
			kinds[m.prof.kinds[in.kind].Kind]++
		} else if in.inner != nil {
			for kind, n := range in.inner.OnHost() {
				kinds[kind] += n
			}
		}
	}
	return kinds
}

// place returns where the op is in the plan that a node's value comes from, -1 of an input and
// of a node that is not in the plan.
func (m *Machine) place(n *gorgonia.Node) int {
	if i, ok := m.plan.index[n.ID()]; ok && m.views[i] == nil {
		return m.plan.computedAt(i)
	}
	return -1
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
	if err := m.buffers[i].Fetch(); err != nil {
		return Array{}, fmt.Errorf("exec: value of %v: %w", n, err)
	}
	return m.buffers[i].Host(), nil
}

// Scalar returns the value of a scalar output.
func (m *Machine) Scalar(n *gorgonia.Node) (float32, error) {
	a, err := m.Value(n)
	if err != nil {
		return 0, err
	}
	if len(a.F32) != 1 {
		return 0, fmt.Errorf("exec: %v is not a scalar", n)
	}
	return a.F32[0], nil
}

// Reset does nothing: a run starts from its inputs alone.
func (m *Machine) Reset() {}

// Close forgets the program and gives memory of a device back. The engine stays open.
func (m *Machine) Close() error {
	err := m.free()
	*m = Machine{}
	return err
}

// Memory returns the bytes of intermediate results and scratch that the machine holds, beside what is Borrowed, on
// a device without its copies for the host's steps.
func (m *Machine) Memory() int64 {
	if m.plan == nil { // closed
		return 0
	}
	return m.plan.bytes()
}

// Nodes returns the number of nodes that run.
func (m *Machine) Nodes() int { return len(m.prog) }
