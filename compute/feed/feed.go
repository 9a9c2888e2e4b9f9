// Package feed holds the inputs of a computation: each is declared, bound to memory and
// filled in one place, by whoever reads it.
//
//	in := feed.New(g)
//	images := in.Column(batch.Column{Name: batch.Images, Shape: []int{3, 48, 48}}, 32)
//	noise := in.Floats("noise", func(s *feed.Step, dst []float32) error { ... }, 32, 32)
//	...
//	err := in.Bind(machine)      // once
//	err = in.Fill(machine, step) // before every run
package feed

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Step is what inputs are filled from.
type Step struct {
	Batch   *batch.Batch
	Update  int // updates made before this one
	Micro   int // of the update's micro-batches, from 0 on
	Counter int // micro-batches of the run before this one: the index of random streams
	// PerEpoch is the number of updates of an epoch, which may end within one, 0 where that is not known.
	PerEpoch float64
	// Rank of Ranks processes holds this batch, whose rows are an equal share of the
	// global batch in the order of the ranks. 0 of 0 is a single process.
	Rank, Ranks int
}

// Share returns the rows [lo, hi) that this process has of the rows of the global batch, all
// in number, where every process has as many as this one. A random stream that is drawn for
// the whole of it gives each process numbers of its own.
func (s *Step) Share(rows int) (lo, hi, all int) {
	ranks := max(1, s.Ranks)
	return s.Rank * rows, (s.Rank + 1) * rows, ranks * rows
}

// Stream returns the index of random streams: that of the global batch, which is one on all processes.
func (s *Step) Stream() uint64 { return uint64(s.Counter) }

// Inputs are the inputs of one computation. A name that is asked for again is the same
// input; with another shape or type it is a mistake in the construction, an
// *op.BuildError.
type Inputs struct {
	g       *gorgonia.ExprGraph
	nodes   map[string]*gorgonia.Node
	memory  map[string]any // what Bind ties the node to
	order   []string       // of memory
	columns []column
	read    []batch.Column // by fills
	fills   []func(*Step) error
}

// column is an input that is the memory of a batch.
type column struct {
	batch.Column
	rows int
	node *gorgonia.Node
}

// New returns the inputs of g, none so far.
func New(g *gorgonia.ExprGraph) *Inputs {
	return &Inputs{g: g, nodes: map[string]*gorgonia.Node{}, memory: map[string]any{}}
}

// Column is a column of the batch, (rows, shape...), read from the batch's own memory.
func (in *Inputs) Column(c batch.Column, rows int) *gorgonia.Node {
	return in.batched(c, rows, append([]int{rows}, c.Shape...))
}

// Flat is Column as one vector, (rows * values of a row).
func (in *Inputs) Flat(c batch.Column, rows int) *gorgonia.Node {
	return in.batched(c, rows, []int{rows * c.Len()})
}

// Shaped is Column in another shape of as many values, such as (rows * V, ...) of a column (V, ...).
func (in *Inputs) Shaped(c batch.Column, rows int, shape ...int) *gorgonia.Node {
	return in.batched(c, rows, shape)
}

// batched is a column of the batch in a shape.
func (in *Inputs) batched(c batch.Column, rows int, shape []int) *gorgonia.Node {
	ints := c.Type == batch.Int32
	if n := in.known(c.Name, ints, shape); n != nil {
		return n
	}
	n := in.node(c.Name, ints, shape)
	in.columns = append(in.columns, column{c, rows, n})
	return n
}

// Read says that a fill reads columns of the batch that are no inputs themselves. The fill
// may rely on a batch to have them, with a value for each of its rows.
func (in *Inputs) Read(columns ...batch.Column) { in.read = append(in.read, columns...) }

// Columns returns the columns of the batch that are read so far.
func (in *Inputs) Columns() []batch.Column {
	all := slices.Clone(in.read)
	for _, c := range in.columns {
		all = append(all, c.Column)
	}
	return all
}

// Floats is a float32 input with memory of its own, which fill writes for every step. No
// shape is a scalar.
func (in *Inputs) Floats(name string, fill func(s *Step, dst []float32) error, shape ...int) *gorgonia.Node {
	if n := in.known(name, false, shape); n != nil {
		return n
	}
	mem := make([]float32, tensor.Shape(shape).TotalSize())
	in.OnFill(func(s *Step) error { return fill(s, mem) })
	return in.SharedFloats(name, mem, shape...)
}

// Ints is Floats for int32.
func (in *Inputs) Ints(name string, fill func(s *Step, dst []int32) error, shape ...int) *gorgonia.Node {
	if n := in.known(name, true, shape); n != nil {
		return n
	}
	mem := make([]int32, tensor.Shape(shape).TotalSize())
	in.OnFill(func(s *Step) error { return fill(s, mem) })
	return in.SharedInts(name, mem, shape...)
}

// FixedInts is a vector that never changes.
func (in *Inputs) FixedInts(name string, values []int32) *gorgonia.Node {
	return in.SharedInts(name, values, len(values))
}

// Count returns n integers from start on, step apart, under a name.
func (in *Inputs) Count(name string, start, n, step int) *gorgonia.Node {
	if node := in.known(name, true, []int{n}); node != nil {
		return node
	}
	values := make([]int32, n)
	for i := range values {
		values[i] = int32(start + i*step)
	}
	return in.FixedInts(name, values)
}

// SharedFloats is an input of memory that its owner changes, such as the ring of a queue.
func (in *Inputs) SharedFloats(name string, mem []float32, shape ...int) *gorgonia.Node {
	return in.shared(name, false, mem, shape)
}

// SharedInts is SharedFloats for int32.
func (in *Inputs) SharedInts(name string, mem []int32, shape ...int) *gorgonia.Node {
	return in.shared(name, true, mem, shape)
}

func (in *Inputs) shared(name string, ints bool, mem any, shape []int) *gorgonia.Node {
	if n := in.known(name, ints, shape); n != nil {
		return n
	}
	in.memory[name], in.order = mem, append(in.order, name)
	return in.node(name, ints, shape)
}

// Unbound is an input that the caller ties to memory before every run.
func (in *Inputs) Unbound(name string, t batch.Type, shape ...int) *gorgonia.Node {
	if n := in.known(name, t == batch.Int32, shape); n != nil {
		return n
	}
	return in.node(name, t == batch.Int32, shape)
}

// OnFill has fill called before every run, in the order of the calls.
func (in *Inputs) OnFill(fill func(*Step) error) { in.fills = append(in.fills, fill) }

// Node returns the input of a name, or nil.
func (in *Inputs) Node(name string) *gorgonia.Node { return in.nodes[name] }

// Memory returns what the input of a name is bound to, []float32 or []int32, or nil.
func (in *Inputs) Memory(name string) any { return in.memory[name] }

// known returns the input that has a name already, or nil.
func (in *Inputs) known(name string, ints bool, shape []int) *gorgonia.Node {
	n, dtype := in.nodes[name], dtypeOf(ints)
	if n != nil && (n.Dtype() != dtype || !slices.Equal(n.Shape(), shape)) {
		panic(&op.BuildError{Op: "input " + name,
			Err: fmt.Errorf("is %v %v and is asked for as %v %v: give one of the two another name", n.Dtype(),
				n.Shape(), dtype, tensor.Shape(shape))})
	}
	return n
}

// dtypeOf is the type of an input's values.
func dtypeOf(ints bool) tensor.Dtype {
	if ints {
		return tensor.Int32
	}
	return tensor.Float32
}

// node makes the input of a name.
func (in *Inputs) node(name string, ints bool, shape []int) *gorgonia.Node {
	var n *gorgonia.Node
	dtype := dtypeOf(ints)
	if len(shape) == 0 {
		n = gorgonia.NewScalar(in.g, dtype, gorgonia.WithName(name))
	} else {
		n = gorgonia.NewTensor(in.g, dtype, len(shape), gorgonia.WithShape(slices.Clone(shape)...),
			gorgonia.WithName(name))
	}
	in.nodes[name] = n
	return n
}

// Binder ties inputs to memory; a compiled computation is one.
type Binder interface {
	SetInput(n *gorgonia.Node, data any) error
}

// Bind ties every input that has memory of its own to it, which stays put.
func (in *Inputs) Bind(m Binder) error {
	for _, name := range in.order {
		if err := m.SetInput(in.nodes[name], in.memory[name]); err != nil {
			return err
		}
	}
	return nil
}

// Fill ties the columns to the memory of a step's batch and fills everything else.
func (in *Inputs) Fill(m Binder, s *Step) error {
	for i := range in.columns {
		c := &in.columns[i]
		if err := check(s.Batch, c.Column, c.rows); err != nil {
			return err
		}
		if err := m.SetInput(c.node, s.Batch.Data(c.Name)); err != nil {
			return err
		}
	}
	for _, c := range in.read {
		if err := check(s.Batch, c, s.Batch.Rows()); err != nil {
			return err
		}
	}
	for _, fill := range in.fills {
		if err := fill(s); err != nil {
			return err
		}
	}
	return nil
}

// Stager is a Binder that can begin to take values where it computes before they are bound.
type Stager interface {
	Stage(n *gorgonia.Node, values []float32) error
}

// Stage begins to take the columns of a batch that a later Fill will have, see compute.Machine.
func (in *Inputs) Stage(m Stager, b *batch.Batch) error {
	for _, c := range in.columns {
		if c.Type != batch.Int32 {
			if err := m.Stage(c.node, b.Floats(c.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// check returns an error where a batch has not so many rows of a column.
func check(b *batch.Batch, c batch.Column, rows int) error {
	got, want := len(b.Floats(c.Name)), rows*c.Len()
	if c.Type == batch.Int32 {
		got = len(b.Ints(c.Name))
	}
	if got != want {
		return fmt.Errorf("feed: %s: got %d values, want %d rows of %d: give batches with all its columns and as many rows as it was built for", c.Name, got, rows, c.Len())
	}
	return nil
}
