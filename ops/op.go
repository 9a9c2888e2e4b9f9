package ops

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/chewxy/hm"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// op is the one implementation of gorgonia.Op in this package: each file fills
// it in for the operation it is named after. kind and args together are the
// identity: two ops of one kind and args on the same operands become one node, so
// args must hold every value that changes the meaning.
type op struct {
	kind string
	args string
	// diff says for each operand whether a gradient flows to it.
	diff []bool
	// shape checks the operands' shapes and returns the output's.
	shape func(in []tensor.Shape) (tensor.Shape, error)
	// ints marks an int32 output.
	ints bool
	// prepare: see exec.Op. nil for an alias.
	prepare func(c *exec.Call) (exec.Step, error)
	// grad returns a gradient node for each operand, nil where diff is false.
	grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes
	// Optional parts, see the interfaces of package exec.
	aux     func(in []tensor.Shape) []exec.AuxSpec
	scratch func(in []tensor.Shape, threads int) int
	flops   func(in []tensor.Shape) int64
	inPlace []int
	// accumulates: the step heeds Call.Accumulate.
	accumulates bool
	// readsHalf lists the operands that may be bfloat16, writesHalf the results that
	// the step writes as bfloat16 where it finds them so: auxiliary ones, or output.
	readsHalf, writesHalf []int
	// alias: the output is operand aliasOf[0] (aliasOf[1] < 0) or its auxiliary
	// result aliasOf[1], under another shape.
	alias *[2]int
}

var (
	_ gorgonia.SDOp  = (*op)(nil)
	_ exec.Op        = (*op)(nil)
	_ exec.Auxer     = (*op)(nil)
	_ exec.Scratcher = (*op)(nil)
	_ exec.Coster    = (*op)(nil)
	_ exec.InPlacer  = (*op)(nil)

	_ exec.Accumulator = (*op)(nil)
	_ exec.HalfReader  = (*op)(nil)
	_ exec.HalfWriter  = (*op)(nil)
)

func (o *op) Arity() int           { return len(o.diff) }
func (o *op) ReturnsPtr() bool     { return true }
func (o *op) CallsExtern() bool    { return false }
func (o *op) OverwritesInput() int { return -1 }
func (o *op) String() string       { return o.kind + "{" + o.args + "}" }

// Kind names the operation without its arguments; profiles group by it.
func (o *op) Kind() string { return o.kind }

func (o *op) WriteHash(h hash.Hash) {
	fmt.Fprintf(h, "geoalign/%s{%s}/%d", o.kind, o.args, len(o.diff))
}

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// Type gives every operand a type of its own and fixes the output's, whose number
// of axes InferShape knows only later: apply sets it.
func (o *op) Type() hm.Type { panic("ops: " + o.kind + " must be applied through ops.apply") }

func (o *op) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := gorgonia.DimSizersToShapes(in)
	if err != nil {
		return nil, err
	}
	return o.shape(shapes)
}

func (o *op) DiffWRT(int) []bool { return o.diff }

func (o *op) SymDiff(in gorgonia.Nodes, out, dy *gorgonia.Node) (grads gorgonia.Nodes, err error) {
	defer Catch(&err)
	if o.grad == nil {
		return nil, fmt.Errorf("ops: %s has no gradient", o.kind)
	}
	return o.grad(in, out, dy), nil
}

func (o *op) Prepare(c *exec.Call) (exec.Step, error) { return o.prepare(c) }

func (o *op) Aux(in []tensor.Shape) []exec.AuxSpec {
	if o.aux == nil {
		return nil
	}
	return o.aux(in)
}

func (o *op) Scratch(in []tensor.Shape, threads int) int {
	if o.scratch == nil {
		return 0
	}
	return o.scratch(in, threads)
}

func (o *op) FLOPs(in []tensor.Shape) int64 {
	if o.flops == nil {
		return 0
	}
	return o.flops(in)
}

func (o *op) InPlace() []int { return o.inPlace }

func (o *op) Accumulates() bool { return o.accumulates }

// output stands for an op's output in writesHalf.
const output = -1

// ReadsHalf implements exec.HalfReader.
func (o *op) ReadsHalf(operand int) bool { return slices.Contains(o.readsHalf, operand) }

// WritesHalf implements exec.HalfWriter.
func (o *op) WritesHalf(aux int) bool { return slices.Contains(o.writesHalf, max(aux, output)) }

// Alias implements exec.Aliaser.
func (o *op) Alias() (operand, aux int, ok bool) {
	if o.alias == nil {
		return 0, 0, false
	}
	return o.alias[0], o.alias[1], true
}

// Do runs the op on its own, as gorgonia's machines want it.
func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) { return exec.Do(o.bound(nil), in...) }

// typed is an op whose output type is known, which is what Gorgonia's type
// inference needs.
type typed struct {
	*op
	arity int
	out   hm.Type
}

func (o *op) bound(out hm.Type) *typed { return &typed{op: o, arity: len(o.diff), out: out} }

// Type is a function from any operands to the output type.
func (t *typed) Type() hm.Type {
	ts := make([]hm.Type, 0, t.arity+1)
	for i := range t.arity {
		ts = append(ts, hm.TypeVariable('c'+rune(i)))
	}
	return hm.NewFnType(append(ts, t.out)...)
}

func (t *typed) Do(in ...gorgonia.Value) (gorgonia.Value, error) { return exec.Do(t, in...) }

// apply puts o into the graph of its operands. It panics with *BuildError.
func apply(o *op, in ...*gorgonia.Node) *gorgonia.Node {
	if len(in) != len(o.diff) {
		panic(&BuildError{Op: o.kind, Err: fmt.Errorf("takes %d operands (got %d)", len(o.diff), len(in))})
	}
	shapes := make([]tensor.Shape, len(in))
	for i, n := range in {
		if n == nil {
			panic(&BuildError{Op: o.kind, Err: fmt.Errorf("operand %d is nil", i)})
		}
		shapes[i] = n.Shape()
	}
	shape, err := o.shape(shapes)
	if err != nil {
		panic(&BuildError{Op: o.kind, Shapes: shapes, Err: err})
	}
	dt := tensor.Float32
	if o.ints {
		dt = tensor.Int32
	}
	var out hm.Type = dt
	if len(shape) > 0 {
		out = gorgonia.TensorType{Dims: len(shape), Of: dt}
	}
	n, err := gorgonia.ApplyOp(o.bound(out), in...)
	if err != nil {
		panic(&BuildError{Op: o.kind, Shapes: shapes, Err: err})
	}
	return n
}

// BuildError is a mistake in the construction of a graph.
type BuildError struct {
	Op     string         // kind of the op
	Shapes []tensor.Shape // shapes of its operands
	Err    error
}

// Error names the op with the shapes of its operands.
func (e *BuildError) Error() string {
	if len(e.Shapes) == 0 {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s%v: %v", e.Op, e.Shapes, e.Err)
}

// Unwrap returns what was wrong.
func (e *BuildError) Unwrap() error { return e.Err }

// Catch turns a *BuildError panic into an error; other panics go on. Use it as
//
//	defer ops.Catch(&err)
//
// in the function that returns the finished graph.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *BuildError:
		*err = r
	default:
		panic(r)
	}
}

// need panics with a shape error unless ok.
func need(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// all returns the first error that is not nil.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// IntOutput says whether the output is int32.
func (o *op) IntOutput() bool { return o.ints }
