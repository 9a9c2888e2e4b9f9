package pairs

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Side is one side of pairs: R sequences of Len tokens.
type Side struct {
	// Rows are vectors of the tokens, (R*Len, C) each; C may differ.
	Rows gorgonia.Nodes
	// Lengths (R) int32, or nil: only tokens [First, Lengths[i]) of sequence i take part.
	Lengths    *gorgonia.Node
	Len, First int
}

// Pairs are those of all queries with all contexts.
type Pairs struct {
	Kind              string // names the op in profiles and errors
	Queries, Contexts Side
	// Transposed scores have a row for each context, not for each query.
	Transposed bool
}

// Most tokens of each side in a block: on the host so many that the matrices of a block stay in the level-2 cache, on a
// device so many that it is busy.
var (
	hostTokens   = [2]int{512, 512}
	deviceTokens = [2]int{4096, 1024}
)

// Scores returns the scores (queries, contexts) of all pairs, as build makes them, with a row for each sequence of
// queries and a column for each of contexts, from the operands of a block. A pair with a sequence without a token has
// the score 0. Gradients go to rows. build is called more than once; it must be a function of what
// the block gives, and panics with *op.BuildError as other builders of graphs do.
func (p Pairs) Scores(build func(b *Block) Matrix) *gorgonia.Node {
	x := &scores{Pairs: p}
	in := op.Operands{}
	for k, s := range []Side{p.Queries, p.Contexts} {
		x.first[k] = len(in)
		for _, n := range s.Rows {
			in.Add(n)
		}
		x.check(s)
		x.count[k] = s.Rows[0].Shape()[0] / s.Len
	}
	x.floats = len(in)
	for k, s := range []Side{p.Queries, p.Contexts} {
		x.lengths[k] = in.Add(s.Lengths)
	}
	x.operands = len(in)
	x.host = x.build(build, hostTokens)
	x.device = x.build(build, deviceTokens)
	return op.Apply(x.op(), in...)
}

// scores describes the ops.
type scores struct {
	Pairs
	first        [2]int // operands that are rows of each side
	floats       int    // those that are rows of either, which have gradients
	lengths      [2]int // -1: none
	operands     int
	count        [2]int // sequences
	host, device *block
}

func (x *scores) side(k int) Side { return []Side{x.Queries, x.Contexts}[k] }

// sideOf returns the side that an operand of rows is of.
func (x *scores) sideOf(operand int) int {
	if operand >= x.first[1] {
		return 1
	}
	return 0
}

func (x *scores) fail(err error) {
	if err != nil {
		panic(&op.BuildError{Op: x.Kind, Err: err})
	}
}

func (x *scores) check(s Side) {
	x.fail(op.Need(len(s.Rows) > 0, "want rows of both sides"))
	for _, n := range s.Rows {
		rows := n.Shape()
		x.fail(op.Need(len(rows) == 2 && s.Len > 0 && rows[0]%max(1, s.Len) == 0 && rows[0] == s.Rows[0].Shape()[0],
			"want rows (R*%d, C) (got %v)", s.Len, rows))
	}
	x.fail(op.Need(s.First >= 0 && s.First < s.Len, "the first token must be in [0, %d) (got %d)", s.Len, s.First))
	if s.Lengths != nil {
		x.fail(op.WantShape([]tensor.Shape{s.Lengths.Shape()}, 0, "lengths", s.Rows[0].Shape()[0]/s.Len))
	}
}

// block is the computation of a block, with what goes in and comes out.
type block struct {
	sides   sides
	inputs  gorgonia.Nodes // of each operand of rows
	spans   [2]*gorgonia.Node
	slopes  *gorgonia.Node // gradients of the scores
	scores  *gorgonia.Node
	grads   gorgonia.Nodes // of inputs
	runs    int
	print   string
	forward *exec.Nested
	back    *exec.Nested
}

// build makes the computation for blocks of so many tokens.
func (x *scores) build(build func(b *Block) Matrix, most [2]int) *block {
	b, g := &block{runs: 1}, gorgonia.NewGraph()
	at := &Block{graph: g}
	for k := range b.sides {
		s := x.side(k)
		tokens := min(max(most[k], s.Len), x.count[k]*s.Len)
		b.sides[k] = room{Len: s.Len, Tokens: tokens / s.Len * s.Len, Sequences: min(tokens, x.count[k])}
		if s.Lengths == nil && s.First == 0 {
			b.sides[k].Sequences = tokens / s.Len
		}
		b.runs *= (x.count[k]*s.Len + tokens - 1) / tokens
		b.spans[k] = gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2+2*b.sides[k].Sequences),
			gorgonia.WithName([]string{"spans of queries", "spans of contexts"}[k]))
	}
	at.sides, at.spans = b.sides, b.spans
	input := func(name string, shape tensor.Shape) *gorgonia.Node {
		return gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	for k := range b.sides {
		for i, n := range x.side(k).Rows {
			rows := input(fmt.Sprintf("rows %d of side %d", i, k), tensor.Shape{b.sides[k].Tokens, n.Shape()[1]})
			at.rows[k] = append(at.rows[k], Features{rows, SideOf(k)})
			b.inputs = append(b.inputs, rows)
		}
	}
	out := build(at)
	at.need(out.grid == grid{Sequences, Sequences}, "the score must have a row and a column for each sequence")
	b.scores, b.slopes = out.node, input("slopes", out.node.Shape())
	b.print = fingerprint(out.node)
	grads, err := gorgonia.Grad(op.Apply(weighed(), b.scores, b.slopes), b.inputs...)
	x.fail(err)
	b.grads = grads
	b.forward = &exec.Nested{Graph: g, Outputs: gorgonia.Nodes{b.scores}, Runs: b.runs, Partial: true}
	b.back = &exec.Nested{Graph: g, Outputs: slices.Clone(b.grads), Runs: b.runs, Partial: true}
	return b
}

// weighed is an op that is never run: its gradient is the gradient of the scores.
func weighed() *op.Op {
	return &op.Op{
		Kind: "pairs weighed", Diff: []bool{true, false},
		Shape: func([]tensor.Shape) (tensor.Shape, error) { return tensor.ScalarShape(), nil },
		Grad:  func(in gorgonia.Nodes, _, _ *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{in[1], nil} },
	}
}

// fingerprint identifies a computation: its ops with their operands.
func fingerprint(out *gorgonia.Node) string {
	numbers, hash := map[int64]int{}, sha256.New()
	var visit func(n *gorgonia.Node) int
	visit = func(n *gorgonia.Node) int {
		if i, ok := numbers[n.ID()]; ok {
			return i
		}
		text := n.Name()
		if o := n.Op(); o != nil {
			text = o.String()
			for it := n.Graph().From(n.ID()); it.Next(); {
				text += fmt.Sprint(" ", visit(it.Node().(*gorgonia.Node)))
			}
		}
		fmt.Fprintln(hash, text)
		numbers[n.ID()] = len(numbers)
		return len(numbers) - 1
	}
	visit(out)
	return fmt.Sprintf("%x", hash.Sum(nil)[:12])
}

// shape is that of the scores.
func (x *scores) shape() tensor.Shape {
	if x.Transposed {
		return tensor.Shape{x.count[1], x.count[0]}
	}
	return tensor.Shape{x.count[0], x.count[1]}
}

// steps are those of the scores in the matrix from one query, and from one context, to the next.
func (x *scores) steps() (query, context int) {
	if x.Transposed {
		return 1, x.count[0]
	}
	return x.count[1], 1
}

func (x *scores) op() *op.Op {
	args := fmt.Sprint(x.host.print, x.first, x.floats, x.lengths, x.Transposed)
	for k := range 2 {
		s := x.side(k)
		args += fmt.Sprintf(" %d-%d", s.First, s.Len)
	}
	forward := *x.host.forward
	forward.OnDevice = x.device.forward
	o := &op.Op{
		Kind: x.Kind, Args: args, Diff: make([]bool, x.operands), Nested: &forward,
		Shape:   func([]tensor.Shape) (tensor.Shape, error) { return x.shape(), nil },
		Scratch: func(in []tensor.Shape, _ int) int { return x.scratch(false) },
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, false) },
		On:      x.onCUDA(false),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d := op.Apply(x.gradient(args), append(slices.Clone(in), dy)...)
			grads := make(gorgonia.Nodes, x.operands)
			grads[0] = d
			for k := range x.floats - 1 {
				grads[k+1] = op.Take(d, k, in[k+1].Shape())
			}
			return grads
		},
	}
	for k := range x.floats {
		o.Diff[k] = true
	}
	return o
}

// gradient is the op of the gradients: that of the first operand, and as auxiliary results those of the others.
func (x *scores) gradient(args string) *op.Op {
	back := *x.host.back
	back.OnDevice = x.device.back
	return &op.Op{
		Kind: x.Kind + " gradients", Args: args, Diff: make([]bool, x.operands+1), Nested: &back,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[x.operands].Eq(x.shape()), "dy must have shape %v", x.shape())
		},
		Aux: func(in []tensor.Shape) (list []exec.AuxSpec) {
			for _, s := range in[1:x.floats] {
				list = append(list, exec.AuxSpec{Shape: s.Clone()})
			}
			return list
		},
		Scratch: func([]tensor.Shape, int) int { return x.scratch(true) },
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, true) },
		On:      x.onCUDA(true),
	}
}

// onCUDA is the step for the CUDA device.
func (x *scores) onCUDA(back bool) map[string]exec.DeviceStep {
	b := x.device
	on := oncuda.Scored{
		Inputs: b.inputs, Spans: b.spans, Slopes: b.slopes, Scores: b.scores, Grads: b.grads, Lengths: x.lengths,
		Count: x.count, Operands: x.operands, Back: back,
	}
	on.Step[0], on.Step[1] = x.steps()
	for k := range 2 {
		on.First[k], on.Sides[k] = x.side(k).First, b.sides[k]
	}
	for k := range b.inputs {
		on.Of = append(on.Of, x.sideOf(k))
	}
	return on.Steps()
}

// scratch is the memory of packed rows and the gradients of scores, of the larger block.
func (x *scores) scratch(back bool) (most int) {
	for _, b := range []*block{x.host, x.device} {
		n := 0
		for _, in := range b.inputs {
			n += in.Shape().TotalSize()
		}
		if back {
			n += b.slopes.Shape().TotalSize()
		}
		most = max(most, n)
	}
	if most > math.MaxInt32 {
		x.fail(fmt.Errorf("blocks are too large: %d values", most))
	}
	return most
}
