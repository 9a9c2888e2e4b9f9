package op

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

// Op describes an operation: each file fills it in for the one that it is named after,
// and Apply makes a node of it. Kind and Args together are the identity: two ops of one
// kind and args on the same operands become one node, so Args must hold every value that
// changes the meaning.
type Op struct {
	Kind string
	Args string
	// Diff says for each operand whether a gradient flows to it.
	Diff []bool
	// Shape checks the operands' shapes and returns the output's.
	Shape func(in []tensor.Shape) (tensor.Shape, error)
	// Ints marks an int32 output.
	Ints bool
	// Host makes the step in the host's memory, see exec.Op. nil for an alias.
	Host func(c *exec.Call) (exec.Step, error)
	// On makes steps for other devices, by their names, see exec.DeviceOp. On a device that
	// it does not name the host's step works on copies.
	On map[string]exec.DeviceStep
	// Grad returns a gradient node for each operand, nil where Diff is false.
	Grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes
	// Optional parts, see the interfaces of package exec.
	Aux     func(in []tensor.Shape) []exec.AuxSpec
	Scratch func(in []tensor.Shape, threads int) int
	// HalfScratch is Scratch for a step that finds a result to write as bfloat16.
	HalfScratch func(in []tensor.Shape, threads int) int
	FLOPs       func(in []tensor.Shape) int64
	InPlace     []int
	// SparesAux: the step does without auxiliary results where there is no backward pass, see exec.Sparer.
	SparesAux bool
	// Remakes: the output is the last operand, which the step does not read, see exec.Remaker.
	Remakes bool
	// Accumulates: the step heeds Call.Accumulate.
	Accumulates bool
	// ReadsHalf lists the operands that may be bfloat16, WritesHalf the results that
	// the step writes as bfloat16 where it finds them so: auxiliary ones, or Output.
	ReadsHalf, WritesHalf []int
	// Nested is a computation that the step runs as Call.Inner, see exec.Nester.
	Nested *exec.Nested
	// For is what an op that builds on this one wants to know of it, such as what made it.
	For any
	// Alias: the output is operand Alias[0] (Alias[1] < 0) or its auxiliary result
	// Alias[1], under another shape.
	Alias *[2]int
}

// Output stands for an op's output in Op.WritesHalf.
const Output = -1

// applied is the one implementation of gorgonia.Op: an op whose output type is known,
// which is what Gorgonia's type inference needs.
type applied struct {
	op  *Op
	out hm.Type
}

var (
	_ gorgonia.SDOp  = (*applied)(nil)
	_ exec.Op        = (*applied)(nil)
	_ exec.Auxer     = (*applied)(nil)
	_ exec.Scratcher = (*applied)(nil)
	_ exec.Coster    = (*applied)(nil)
	_ exec.InPlacer  = (*applied)(nil)
	_ exec.Aliaser   = (*applied)(nil)
	_ exec.DeviceOp  = (*applied)(nil)

	_ exec.Accumulator   = (*applied)(nil)
	_ exec.Nester        = (*applied)(nil)
	_ exec.HalfReader    = (*applied)(nil)
	_ exec.HalfWriter    = (*applied)(nil)
	_ exec.Sparer        = (*applied)(nil)
	_ exec.Remaker       = (*applied)(nil)
	_ exec.HalfScratcher = (*applied)(nil)
	_ exec.HalfDeviceOp  = (*applied)(nil)
)

// Of returns the description of n's op, nil for a node that Apply did not make.
func Of(n *gorgonia.Node) *Op {
	if a, ok := n.Op().(*applied); ok {
		return a.op
	}
	return nil
}

func (a *applied) Arity() int { return len(a.op.Diff) }

func (a *applied) ReturnsPtr() bool { return true }

func (a *applied) CallsExtern() bool { return false }

func (a *applied) OverwritesInput() int { return -1 }

func (a *applied) String() string { return a.op.Kind + "{" + a.op.Args + "}" }

// Kind names the operation without its arguments; profiles group by it.
func (a *applied) Kind() string { return a.op.Kind }

func (a *applied) WriteHash(h hash.Hash) {
	fmt.Fprintf(h, "geoalign/%s{%s}/%d", a.op.Kind, a.op.Args, len(a.op.Diff))
}

func (a *applied) Hashcode() uint32 {
	h := fnv.New32a()
	a.WriteHash(h)
	return h.Sum32()
}

// Type is a function from any operands to the output type: InferShape knows the number of
// the output's axes only later, so Apply has fixed it.
func (a *applied) Type() hm.Type {
	ts := make([]hm.Type, 0, a.Arity()+1)
	for i := range a.Arity() {
		ts = append(ts, hm.TypeVariable('c'+rune(i)))
	}
	return hm.NewFnType(append(ts, a.out)...)
}

func (a *applied) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := gorgonia.DimSizersToShapes(in)
	if err != nil {
		return nil, err
	}
	return a.op.Shape(shapes)
}

func (a *applied) DiffWRT(int) []bool { return a.op.Diff }

func (a *applied) SymDiff(in gorgonia.Nodes, out, dy *gorgonia.Node) (grads gorgonia.Nodes, err error) {
	defer Catch(&err)
	if a.op.Grad == nil {
		if !slices.Contains(a.op.Diff, true) { // asked for the gradient at its result, which goes no further
			return make(gorgonia.Nodes, len(in)), nil
		}
		return nil, fmt.Errorf("ops: %s has no gradient", a.op.Kind)
	}
	return a.op.Grad(in, out, dy), nil
}

// Do runs the op on its own, as Gorgonia's machines want it.
func (a *applied) Do(in ...gorgonia.Value) (gorgonia.Value, error) { return exec.Do(a, in...) }

func (a *applied) Prepare(c *exec.Call) (exec.Step, error) { return a.op.Host(c) }

// PrepareOn implements exec.DeviceOp.
func (a *applied) PrepareOn(device string, c *exec.DeviceCall) (exec.Step, error) {
	if prepare := a.op.On[device].Prepare; prepare != nil {
		return prepare(c)
	}
	return nil, nil
}

func (a *applied) Aux(in []tensor.Shape) []exec.AuxSpec {
	if a.op.Aux == nil {
		return nil
	}
	return a.op.Aux(in)
}

func (a *applied) Scratch(in []tensor.Shape, threads int) int {
	if a.op.Scratch == nil {
		return 0
	}
	return a.op.Scratch(in, threads)
}

// HalfScratch implements exec.HalfScratcher.
func (a *applied) HalfScratch(in []tensor.Shape, threads int) int {
	if a.op.HalfScratch == nil {
		return 0
	}
	return a.op.HalfScratch(in, threads)
}

func (a *applied) FLOPs(in []tensor.Shape) int64 {
	if a.op.FLOPs == nil {
		return 0
	}
	return a.op.FLOPs(in)
}

func (a *applied) InPlace() []int { return a.op.InPlace }

func (a *applied) Accumulates() bool { return a.op.Accumulates }

// SparesAux implements exec.Sparer.
func (a *applied) SparesAux() bool { return a.op.SparesAux }

// Remakes implements exec.Remaker.
func (a *applied) Remakes(device string) bool {
	return a.op.Remakes && !a.op.On[device].Keeps
}

// Nested implements exec.Nester.
func (a *applied) Nested() *exec.Nested { return a.op.Nested }

// ReadsHalf implements exec.HalfReader.
func (a *applied) ReadsHalf(operand int) bool { return slices.Contains(a.op.ReadsHalf, operand) }

// WritesHalf implements exec.HalfWriter.
func (a *applied) WritesHalf(aux int) bool { return slices.Contains(a.op.WritesHalf, max(aux, Output)) }

// HalfOn implements exec.HalfDeviceOp.
func (a *applied) HalfOn(device string) exec.Half { return a.op.On[device].Half }

// Alias implements exec.Aliaser.
func (a *applied) Alias() (operand, aux int, ok bool) {
	if a.op.Alias == nil {
		return 0, 0, false
	}
	return a.op.Alias[0], a.op.Alias[1], true
}

// IntOutput says whether the output is int32.
func (a *applied) IntOutput() bool { return a.op.Ints }

// Apply puts o into the graph of its operands. It panics with *BuildError.
func Apply(o *Op, in ...*gorgonia.Node) *gorgonia.Node {
	if len(in) != len(o.Diff) {
		panic(&BuildError{Op: o.Kind, Err: fmt.Errorf("takes %d operands (got %d)", len(o.Diff), len(in))})
	}
	shapes := make([]tensor.Shape, len(in))
	for i, n := range in {
		if n == nil {
			panic(&BuildError{Op: o.Kind, Err: fmt.Errorf("operand %d is nil", i)})
		}
		shapes[i] = n.Shape()
	}
	shape, err := o.Shape(shapes)
	if err != nil {
		panic(&BuildError{Op: o.Kind, Shapes: shapes, Err: err})
	}
	dt := tensor.Float32
	if o.Ints {
		dt = tensor.Int32
	}
	var out hm.Type = dt
	if len(shape) > 0 {
		out = gorgonia.TensorType{Dims: len(shape), Of: dt}
	}
	n, err := gorgonia.ApplyOp(&applied{op: o, out: out}, in...)
	if err != nil {
		panic(&BuildError{Op: o.Kind, Shapes: shapes, Err: err})
	}
	return n
}
