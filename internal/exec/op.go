// Package exec runs Gorgonia expression graphs from a plan made once.
//
// Compile walks the graph, orders the nodes it needs, decides when each
// intermediate result dies and lets later results reuse its memory, asks every
// op for a step function bound to its buffers, and from then on a run is a loop
// over those functions: nothing is allocated, whatever the size of the model.
// Machine implements gorgonia.VM.
//
// The executor owns every buffer. An op sees its buffers through a Call and
// keeps nothing of its own between runs.
package exec

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Array is a dense row-major host array: one of F32 and I32 is set, or BF16 alone.
// A scalar has an empty shape and one element.
type Array struct {
	Shape tensor.Shape
	F32   []float32
	I32   []int32
	// BF16 holds bfloat16 values, the upper halves of rounded float32 values: a result that is stored so (see
	// HalfWriter).
	BF16 []uint16
	// Packs is of a graph input that never changes, see Machine.SetPacks; else nil.
	Packs *Packs
}

// Len returns the number of elements.
func (a Array) Len() int { return a.Shape.TotalSize() }

// Dim returns the size of axis i.
func (a Array) Dim(i int) int { return a.Shape[i] }

// Rows returns the product of all axes but the last (1 for a vector).
func (a Array) Rows() int {
	if len(a.Shape) == 0 {
		return 1
	}
	return a.Len() / a.Cols()
}

// Cols returns the size of the last axis (1 for a scalar).
func (a Array) Cols() int {
	if len(a.Shape) == 0 {
		return 1
	}
	return a.Shape[len(a.Shape)-1]
}

// Call is what a step on the host works on: see DeviceCall for other devices, whose values
// it has copies of. The executor fills it once, before
// Prepare, and may rebind the slices of In between runs: read them through the
// Call inside the step function, never capture a slice.
type Call struct {
	// Engine does matrix products and splits work over threads.
	Engine Engine
	// In holds the operands in graph order.
	In []Array
	// InAux holds, for each operand, the auxiliary results of the node that
	// made it (empty for nodes without any).
	InAux [][]Array
	// Out is the result. Its content is undefined before the step runs, unless
	// it shares memory with an operand (see InPlacer) or Accumulate is set.
	Out Array
	// Aux holds this op's auxiliary results, as announced by Auxer.
	Aux []Array
	// Accumulate says that the step must add its result to what Out holds. Set only
	// for an Accumulator, before Prepare.
	Accumulate bool
	// Scratch is uninitialised memory that lives for one step of this op, as
	// asked for by Scratcher.
	Scratch []float32
	// Inner is the computation of a Nester.
	Inner *Inner
}

// Step runs an op once on the buffers of the Call it was prepared with.
type Step func() error

// For returns the step that calls body on ranges that cover [0, n), on several threads.
func (c *Call) For(n, grain int, body func(worker, lo, hi int)) (Step, error) {
	return func() error {
		c.Engine.For(n, grain, body)
		return nil
	}, nil
}

// Op is a Gorgonia op that the executor can run without allocation.
type Op interface {
	gorgonia.Op
	// Prepare checks the operands' shapes and returns the step function.
	// Closures passed to Engine.For must be made here, not in the step, so that
	// a run allocates nothing.
	Prepare(c *Call) (Step, error)
}

// AuxSpec describes an auxiliary result.
type AuxSpec struct {
	Shape tensor.Shape
	Int   bool // int32 instead of float32
}

// Auxer is an op with results besides its output, such as the statistics that
// its backward op needs. They live until the last consumer of the node has run,
// and consumers read them through Call.InAux.
type Auxer interface {
	Aux(in []tensor.Shape) []AuxSpec
}

// Sparer is an Auxer that can do without its auxiliary results, which ops of a backward pass alone read: in a plan
// with Config.Forward Call.Aux is nil.
type Sparer interface {
	SparesAux() bool
}

// Scratcher is an op that needs working memory.
type Scratcher interface {
	// Scratch returns the number of float32 values.
	Scratch(in []tensor.Shape, threads int) int
}

// Coster is an op that knows the number of floating-point operations that it
// runs in matrix products (a multiply and an add count two).
type Coster interface {
	FLOPs(in []tensor.Shape) int64
}

// InPlacer is an op whose output may take the memory of an operand that nobody
// reads afterwards. InPlace lists those operands, best first.
type InPlacer interface {
	InPlace() []int
}

// Accumulator is an op that can add its output to what is in its memory already, as
// a matrix product can. The plan asks for it through Call.Accumulate where the output
// goes into nothing but a sum. The op must not also work in place then, and its
// auxiliary results are its own as always. A sum that is made so may round differently
// from one that is made of two arrays.
type Accumulator interface {
	Accumulates() bool
}

// Summer is an op whose output is the sum of its two operands, element by element,
// if Sum says so: like Gorgonia's own addition, a place for Accumulators to add to.
// An addition of the forward pass should not say so where Recompute is used: what is
// kept decides there whether a summand dies, and rounding with it.
type Summer interface {
	Sum() bool
}

// Aliaser is an op whose output is the memory of an operand, or of one of its
// auxiliary results (aux >= 0), under another shape. It is never run. ok is false
// for an op that is not an alias after all.
type Aliaser interface {
	Alias() (operand, aux int, ok bool)
}
