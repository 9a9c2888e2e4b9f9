package exec

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Engine is what steps on the host compute with beside the loops of package vector:
// threads, and products of matrices in a precision. *kernel.Engine is one.
type Engine interface {
	Threads() int
	// For calls body on ranges that cover [0, n), on several threads.
	For(n, grain int, body func(worker, lo, hi int))
	// BF16 says that products are in bfloat16.
	BF16() bool
	// KeepsRounded says that an operand that is read more than once should be kept rounded.
	KeepsRounded() bool
	// Multiply computes p on all threads, MultiplySerial and GemmSerial on the calling one.
	Multiply(p *gemm.Product)
	MultiplySerial(p *gemm.Product)
	// PackWeights packs op(B) of p for products like it, nil where that saves nothing.
	PackWeights(p *gemm.Product) *gemm.Packed
	GemmSerial(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
	NewAttention(s attend.Sizes) *attend.Head
	NewConvolution(s convolve.Sizes) *convolve.Convolution
}

// DeviceEngine is an Engine beside a device, which is what machines run on that are compiled with it.
type DeviceEngine interface {
	// Device returns a Device, nil without one.
	Device() kernel.Device
}

var _ DeviceEngine = (*kernel.Engine)(nil)

// Device keeps the results of a machine in memory of its own and may run ops there. A
// machine without one keeps them in the host's memory, where they are used as they lie.
type Device interface {
	// Name is what ops name the device by, see DeviceOp.
	Name() string
	// Alloc returns memory of so many words of four bytes.
	Alloc(words int) (Memory, error)
}

// Recorder is a Device that can record what steps of its own enqueue, and replay it at less cost than step by step.
type Recorder interface {
	// Record calls steps, which have run before, without running anything.
	Record(steps func() error) (Recording, error)
}

// Recording is recorded work.
type Recording interface {
	Launch() error
	Close() error
}

// Mirrorer is a Device with memory that stands for memory of the host's, such as parameters that stay on the device.
type Mirrorer interface {
	// Mirrored returns memory that stands for host, false if there is none. Its Free does nothing, and the host's view of a buffer
	// there is host itself.
	Mirrored(host []float32) (Mirrored, bool)
	// Refresh takes what the host has changed in such memory to the device.
	Refresh() error
}

// Timeline is a Device that measures how long it takes for what it is given, see Machine.StepByStep.
type Timeline interface {
	// Begin sets the first mark, once the device is busy enough for the host to be ahead of it.
	Begin() error
	// Mark sets a further one behind what was enqueued.
	Mark() error
	// End waits for the device and returns the times between marks.
	End() ([]time.Duration, error)
}

// Borrower is a Device that can copy from memory of the caller's without a copy in between.
type Borrower interface {
	// Borrow enqueues a copy of values to a buffer of the device. False: it does not, and nothing has happened.
	Borrow(to Buffer, from Array) (bool, error)
	// Return waits until the device does not read what it has borrowed any more.
	Return() error
}

// Stager is a Device that can copy values of the host's beside its other work.
type Stager interface {
	// NewStage returns memory for values that wait to be an input.
	NewStage(s Spec) (Stage, error)
}

// Stage is memory of a device that values wait in.
type Stage interface {
	// Fill begins to copy values there, which may not change until Take and the end of the run after it, or Drop. False: it does
	// not, such as where they are few.
	Fill(from Array) (bool, error)
	// Take enqueues the copy from there to a buffer.
	Take(to Buffer) error
	// Drop waits until the device does not read the values any more.
	Drop() error
	Free() error
}

// Adder is a Device with a step for the additions that Gorgonia makes when a node has several gradients, whose op is not of
// package ops.
type Adder interface {
	// PrepareAdd is DeviceOp.PrepareOn of Out = In[0] + In[1], of one number of values.
	PrepareAdd(c *DeviceCall) (Step, error)
}

// Mirrored is memory that stands for memory of the host's.
type Mirrored interface {
	Memory
	// Changed says that work which was enqueued writes there.
	Changed()
}

// Waiter is a Device whose steps return before they are done.
type Waiter interface {
	// Sync waits for all that was enqueued.
	Sync() error
}

// Memory is memory of a device that buffers lie in.
type Memory interface {
	// Buffer returns the value that begins at a word. Buffers of values that do not live
	// at the same time, or that are one value under several shapes, overlap.
	Buffer(word int, s Spec) Buffer
	// Free gives the memory back. Its buffers are not used afterwards.
	Free() error
}

// Buffer is a value as a device keeps it. What is behind it only the device and its own
// steps know; everybody else reads and writes the host's view.
type Buffer interface {
	// Host returns the host's view of the value, the same memory at every call. It is a
	// copy: Fetch brings the view up to date, Store takes it to the device.
	Host() Array
	Fetch() error
	Store() error
}

// Type is the type of a buffer's values.
type Type int

// Types of values.
const (
	Float32  Type = iota
	Int32         // four bytes, as float32
	BFloat16      // two in a word, see HalfWriter
)

// Spec says what a buffer holds.
type Spec struct {
	Shape tensor.Shape
	Type  Type
}

// Words returns the words of four bytes that the value takes.
func (s Spec) Words() int {
	if s.Type == BFloat16 {
		return halfSize(s.Shape.TotalSize())
	}
	return s.Shape.TotalSize()
}

// Array returns memory of the host, of at least Words words, as the value.
func (s Spec) Array(words []float32) Array {
	n := s.Words()
	words = words[:n:n]
	switch s.Type {
	case Int32:
		return Array{Shape: s.Shape, I32: unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(words))), n)}
	case BFloat16:
		return Array{Shape: s.Shape, BF16: asHalves(words, s.Shape.TotalSize())}
	}
	return Array{Shape: s.Shape, F32: words}
}

// DeviceCall is Call for a step on a device: the same operands and results, as the device
// keeps them. Buffers of inputs may be exchanged between runs: read In through the call.
type DeviceCall struct {
	In         []Operand
	InAux      [][]Operand
	Out        Operand
	Aux        []Operand
	Accumulate bool
	BF16       bool // products are in bfloat16
	// Inner is the computation of a Nester, which runs on the device too.
	Inner *Inner
	// Unread says that nobody reads Out, as auxiliary results are what the op is there for: the step need not write it.
	Unread bool
}

// Operand is a buffer as one op sees it: several may see one under different shapes.
type Operand struct {
	Spec
	Buffer Buffer
	// Shadow, of a result, is where the step writes its values as bfloat16 too, nil: nowhere. See Half.Shadows.
	Shadow Buffer
}

// DeviceOp is an op that may have steps for devices, beside that of Op for the host.
type DeviceOp interface {
	// PrepareOn returns the step for a device of that name, nil if there is none: then the
	// step of the host runs on copies.
	PrepareOn(device string, c *DeviceCall) (Step, error)
}

// hostBuffer is a value in the host's memory, where there is nothing to copy.
type hostBuffer struct{ Array }

func (b hostBuffer) Host() Array { return b.Array }

func (hostBuffer) Fetch() error { return nil }

func (hostBuffer) Store() error { return nil }

// spec says what a result holds.
func (m *Machine) spec(r result) Spec {
	s := Spec{Shape: r.shape}
	switch {
	case r.ints:
		s.Type = Int32
	case m.plan.units[r.unit].half:
		s.Type = BFloat16
	}
	return s
}

// buffer returns a computed result.
func (m *Machine) buffer(r result) Buffer {
	u := m.plan.units[r.unit]
	switch {
	case m.memory == nil && u.external != nil:
		return hostBuffer{m.spec(r).Array(u.external)}
	case m.memory == nil:
		return hostBuffer{m.spec(r).Array(m.arena[u.offset:])}
	case u.external != nil:
		return m.bound[r.unit].Buffer(0, m.spec(r))
	}
	return m.memory.Buffer(u.offset, m.spec(r))
}

// alloc gives the machine memory for its plan: the host's, or the device's, where what
// lies in memory of the caller's has a place of its own.
func (m *Machine) alloc() (err error) {
	d := m.cfg.Device
	if d == nil {
		return nil
	}
	shared := false
	if room := m.cfg.Room; room == nil {
		m.memory, err = d.Alloc(m.plan.arena)
	} else if m.memory, shared, err = room.on(d, m.plan.arena); shared {
		m.room, room.last = room, nil // constants are written there
	}
	if err != nil {
		return fmt.Errorf("exec: memory of %s: %w", d.Name(), err)
	}
	m.bound, m.handed = map[int]Memory{}, map[int]Buffer{}
	for i, u := range m.plan.units {
		if u.external == nil || m.bound[i] != nil {
			continue
		}
		if x, ok := d.(Mirrorer); ok {
			if mem, ok := x.Mirrored(u.external); ok {
				m.bound[i], m.mirrored = mem, append(m.mirrored, mem)
				continue
			}
		}
		if m.bound[i], err = d.Alloc(u.size); err != nil {
			return fmt.Errorf("exec: memory of %s: %w", d.Name(), err)
		}
		m.handed[i] = m.bound[i].Buffer(0, Spec{Shape: tensor.Shape{u.size}})
	}
	return nil
}

// free gives back what alloc and place took.
func (m *Machine) free() error {
	errs := m.forget()
	if m.memory != nil {
		errs = append(errs, m.memory.Free())
	}
	for _, mem := range m.bound {
		errs = append(errs, mem.Free())
	}
	for _, s := range m.inputs {
		if s.memory != nil {
			errs = append(errs, s.memory.Free())
		}
		if s.stage != nil {
			errs = append(errs, s.stage.Free())
		}
	}
	for _, in := range m.prog {
		if in.inner != nil && in.inner.memory != nil {
			errs = append(errs, in.inner.free())
		}
	}
	return cause.Join(errs...)
}

// onDevice returns the op's own step for the device, with the computation within it; nil where it has none.
func (b *builder) onDevice(i int, accumulate bool) (Step, *Inner, error) {
	e := &b.plan.entries[i]
	prepare := func(c *DeviceCall) (Step, error) { return nil, nil }
	if own, ok := e.node.Op().(DeviceOp); ok {
		prepare = func(c *DeviceCall) (Step, error) { return own.PrepareOn(b.cfg.Device.Name(), c) }
	} else if d, ok := b.cfg.Device.(Adder); ok && isAdd(e.node.Op()) {
		prepare = d.PrepareAdd
	}
	d := &DeviceCall{
		Out: Operand{Spec: b.spec(e.out), Buffer: b.buffers[i]}, Aux: b.operands(i), Accumulate: accumulate,
		BF16: b.cfg.Engine.BF16(), Unread: !b.cfg.CheckNaN && !b.read[value{i, 0}],
	}
	for k, r := range e.shadows {
		switch {
		case r.unit < 0:
		case k == 0:
			d.Out.Shadow = b.buffer(r)
		default:
			d.Aux[k-1].Shadow = b.buffer(r)
		}
	}
	for k, j := range e.in {
		x := b.operand(e, k) // without a buffer for an input so far
		d.In, d.InAux = append(d.In, x), append(d.InAux, b.operands(j))
	}
	if e.inner != nil {
		inner, err := b.innerOnDevice(e)
		if err != nil {
			return nil, nil, err
		}
		d.Inner = inner
	}
	step, err := prepare(d)
	if step == nil || err != nil {
		if d.Inner != nil {
			err = cause.Join(err, d.Inner.free())
		}
		return nil, nil, err
	}
	for k, j := range e.in {
		if slot := b.views[j]; slot != nil {
			slot.placed = true
			slot.deviceUses = append(slot.deviceUses, &d.In[k])
			d.In[k].Buffer = slot.buffer
		}
	}
	return step, d.Inner, nil
}

// operands returns the auxiliary results of entry i.
func (b *builder) operands(i int) (out []Operand) {
	for k, r := range b.plan.entries[i].aux {
		out = append(out, Operand{Spec: b.spec(r), Buffer: b.auxes[i][k]})
	}
	return out
}

// operand returns operand k of an entry as its step reads it: the result, or its shadow.
func (b *builder) operand(e *entry, k int) Operand {
	j := e.in[k]
	out := b.plan.entries[j].out
	if u := e.shadowOf(k); u >= 0 {
		r := result{unit: u, shape: out.shape}
		return Operand{Spec: b.spec(r), Buffer: b.buffer(r)}
	}
	if out.unit < 0 {
		return Operand{Spec: inputSpec(b.plan.entries[j].node)}
	}
	return Operand{Spec: b.spec(out), Buffer: b.buffers[j]}
}

// staged makes the host's step of entry i work on copies: of in, its operands but for inputs, and of results.
func (b *builder) staged(i int, c *Call, in []Buffer, step Step) Step {
	e := &b.plan.entries[i]
	read := slices.Clone(in)
	for _, j := range e.in {
		read = append(read, b.auxes[j]...)
	}
	if c.Accumulate {
		read = append(read, b.buffers[i])
	}
	written := append([]Buffer{b.buffers[i]}, b.auxes[i]...)
	return func() error {
		for _, x := range read {
			if err := x.Fetch(); err != nil {
				return err
			}
		}
		if err := step(); err != nil {
			return err
		}
		for _, x := range written {
			if err := x.Store(); err != nil {
				return err
			}
		}
		return nil
	}
}

// widen gives c float32 in place of bfloat16 that the op's step on the host does not read or write, and returns both for each: of
// what it reads and of what it writes.
func (b *builder) widen(e *entry, c *Call) (read, written []Array) {
	float := func(a *Array, takes bool, list *[]Array) {
		if a.F32 != nil || a.BF16 == nil || takes {
			return
		}
		a.F32 = make([]float32, a.Len())
		*list = append(*list, *a)
		a.BF16 = nil
	}
	o := e.node.Op()
	for k, j := range e.in {
		if b.views[j] == nil {
			float(&c.In[k], readsHalf(o, k), &read)
		}
	}
	float(&c.Out, writesHalf(o, -1), &written)
	for k := range c.Aux {
		float(&c.Aux[k], writesHalf(o, k), &written)
	}
	return read, written
}

// widened returns step with what takes values from one to the other.
func widened(read, written []Array, step Step) Step {
	if len(read)+len(written) == 0 {
		return step
	}
	return func() error {
		for _, x := range read {
			vector.FromBF16(x.F32, x.BF16)
		}
		err := step()
		for _, x := range written {
			vector.ToBF16(x.BF16, x.F32)
		}
		return err
	}
}

// copyGrain is the least number of values that are worth a thread when they are copied.
const copyGrain = 1 << 18

// bring takes the inputs to the device before a run: those that it keeps itself to the
// host's steps, and the caller's memory to the device's.
func (m *Machine) bring() error {
	if m.within && !m.copies() { // the run around has done it
		return nil
	}
	if err := m.wait(); err != nil { // what an earlier run reads may not change under it
		return err
	}
	if d, ok := m.cfg.Device.(Mirrorer); ok {
		if err := d.Refresh(); err != nil {
			return err
		}
	}
	for _, s := range m.inputs {
		if !s.placed {
			continue
		}
		if s.resident {
			if len(s.uses) > 0 {
				if err := s.buffer.Fetch(); err != nil {
					return err
				}
			}
			continue
		}
		if s.buffer == nil {
			if err := s.take(m.cfg.Device); err != nil {
				return err
			}
		}
		if s.staged != nil && unsafe.SliceData(s.staged) == unsafe.SliceData(s.array.F32) {
			s.staged = nil
			if err := s.stage.Take(s.buffer); err != nil {
				return err
			}
			continue
		}
		if lender, ok := m.cfg.Device.(Borrower); ok {
			if done, err := lender.Borrow(s.buffer, s.array); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		view := s.buffer.Host()
		if n := len(s.array.F32); n > 0 {
			m.cfg.Engine.For(n, copyGrain, func(_, lo, hi int) { copy(view.F32[lo:hi], s.array.F32[lo:hi]) })
		}
		copy(view.I32, s.array.I32)
		if err := s.buffer.Store(); err != nil {
			return err
		}
	}
	return nil
}

// copies says whether inputs are copied before a run, to the device or from it.
func (m *Machine) copies() bool {
	for _, s := range m.inputs {
		if s.buffer != nil && (!s.resident || len(s.uses) > 0) {
			return true
		}
	}
	return false
}

// hand copies what is bound to memory of the caller's there after a run.
func (m *Machine) hand() error {
	for i, b := range m.handed {
		if err := b.Fetch(); err != nil {
			return err
		}
		copy(m.plan.units[i].external, b.Host().F32)
	}
	return nil
}

// take gives an input that a step on the device reads a buffer there, where the caller binds it to memory of the host's.
func (s *inputSlot) take(d Device) error {
	spec := inputSpec(s.node)
	if s.own == nil {
		mem, err := d.Alloc(spec.Words())
		if err != nil {
			return fmt.Errorf("memory for input %s: %w", s.node.Name(), err)
		}
		s.memory, s.own = mem, mem.Buffer(0, spec)
	}
	s.point(s.own)
	return nil
}

// point has the device's steps read b.
func (s *inputSlot) point(b Buffer) {
	s.exchanges++
	s.buffer = b
	for _, u := range s.deviceUses {
		u.Buffer = b
	}
}

// inputSpec says what an input holds, or an input under another shape.
func inputSpec(n *gorgonia.Node) Spec {
	s := Spec{Shape: n.Shape()}
	if n.Dtype() == tensor.Int32 {
		s.Type = Int32
	}
	return s
}
