package exec

import (
	"time"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
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
	// Multiply computes p on all threads, MultiplySerial and GemmSerial on the calling one.
	Multiply(p *gemm.Product)
	MultiplySerial(p *gemm.Product)
	// PackWeights packs op(B) of p for products like it, nil where that saves nothing.
	PackWeights(p *gemm.Product) *gemm.Packed
	GemmSerial(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
		beta float32, c []float32, ldc int)
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
	// Mirrored returns memory that stands for host, false if there is none. Its Free does nothing, and the host's view
	// of a buffer there is host itself.
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
	// Fill begins to copy values there, which may not change until Take and the end of the run after it, or Drop.
	// False: it does not, such as where they are few.
	Fill(from Array) (bool, error)
	// Take enqueues the copy from there to a buffer.
	Take(to Buffer) error
	// Drop waits until the device does not read the values any more.
	Drop() error
	Free() error
}

// Adder is a Device with a step for the additions that Gorgonia makes when a node has several gradients, whose op is
// not of package ops.
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

// Prepare makes the step of an op for a device, see DeviceOp.PrepareOn.
type Prepare = func(c *DeviceCall) (Step, error)

// DeviceStep is what an op has for one device.
type DeviceStep struct {
	Prepare Prepare
	Half    Half // what the step does with bfloat16 besides
	// Keeps says of a Remaker that its operand is kept instead: making it again costs more there than its memory is
	// worth.
	Keeps bool
}

// hostBuffer is a value in the host's memory, where there is nothing to copy.
type hostBuffer struct{ Array }

func (b hostBuffer) Host() Array { return b.Array }

func (hostBuffer) Fetch() error { return nil }

func (hostBuffer) Store() error { return nil }
