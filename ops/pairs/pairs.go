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
	// Wholes are vectors of the sequences, (R, C) each.
	Wholes gorgonia.Nodes
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
	// Shared are operands that all blocks read, such as the weights of layers.
	Shared gorgonia.Nodes
	// Vectors is how long the longest vectors are that a computation makes of queries for each context, 0 where it makes
	// none. Blocks are smaller then.
	Vectors int
}

// Most tokens of each side in a block: on the host so many that the matrices of a block stay in the level-2 cache, on a
// device so many that it is busy.
var (
	hostTokens   = [2]int{512, 512}
	deviceTokens = [2]int{4096, 1024}
)

// Most tokens of queries in a block with vectors for each context, and most of those: on the host vectors, on a device
// their values.
var (
	hostVectors   = [2]int{64, 1024}
	deviceVectors = [2]int{1024, 8 << 20}
)

// fewTokens is how many tokens a sequence has at least, in the mean, where those of a block fill it. What there is of
// each sequence has memory for no more of them.
const fewTokens = 4

// most are the most tokens of each side in a block, and sequences of contexts.
func (p Pairs) most(device bool) (tokens [2]int, contexts int) {
	tokens, of, size := hostTokens, hostVectors, 1
	if device {
		tokens, of, size = deviceTokens, deviceVectors, p.Vectors
	}
	if p.Vectors == 0 {
		return tokens, math.MaxInt
	}
	q := max(of[0], p.Queries.Len)
	contexts = max(1, of[1]/(q*size))
	return [2]int{of[0], min(tokens[1], contexts*p.Contexts.Len)}, contexts
}

// Scores returns the scores (queries, contexts) of all pairs, as build makes them, with a row for each sequence of
// queries and a column for each of contexts, from the operands of a block. A pair with a sequence without a token has
// the score 0. Gradients go to rows and to what is shared. build is called more than once; it must be a
// function of what the block gives, and panics with *op.BuildError as other builders of graphs do.
func (p Pairs) Scores(build func(b *Block) Matrix) *gorgonia.Node {
	return p.scores(func(b *Block) []Matrix { return []Matrix{build(b)} })
}

// ScoresWith are Scores with values of each pair beside them, (queries, contexts, K), which have no gradient: build
// returns the score and K of those.
func (p Pairs) ScoresWith(build func(b *Block) []Matrix) (scores, values *gorgonia.Node) {
	scores = p.scores(build)
	o := op.Of(scores)
	return scores, op.Take(scores, 0, o.Aux(nil)[0].Shape)
}

func (p Pairs) scores(build func(b *Block) []Matrix) *gorgonia.Node {
	x := &scores{Pairs: p}
	in := op.Operands{}
	for k, s := range []Side{p.Queries, p.Contexts} {
		for _, n := range s.Rows {
			in.Add(n)
			x.of = append(x.of, operand{k, Tokens})
		}
		for _, n := range s.Wholes {
			in.Add(n)
			x.of = append(x.of, operand{k, Sequences})
		}
		x.check(s)
		x.count[k] = s.Rows[0].Shape()[0] / s.Len
	}
	x.rows = len(in)
	for _, n := range p.Shared {
		in.Add(n)
	}
	x.floats = len(in)
	for k, s := range []Side{p.Queries, p.Contexts} {
		x.lengths[k] = in.Add(s.Lengths)
	}
	x.operands = len(in)
	shared := gorgonia.Nodes(in[x.rows:x.floats])
	x.host = x.build(build, false, shared)
	x.device = x.build(build, true, shared)
	return op.Apply(x.op(), in...)
}

// scores describes the ops.
type scores struct {
	Pairs
	of           []operand // those that are rows
	rows         int       // how many
	floats       int       // those and the shared ones
	lengths      [2]int    // -1: none
	operands     int
	count        [2]int // sequences
	host, device *block
}

// operand is one of the tokens of a side, or of its sequences.
type operand struct {
	side int
	axis Axis
}

func (x *scores) side(k int) Side { return []Side{x.Queries, x.Contexts}[k] }

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
	for _, n := range s.Wholes {
		shape := n.Shape()
		x.fail(op.Need(len(shape) == 2 && shape[0]*s.Len == s.Rows[0].Shape()[0],
			"want a row for each sequence (got %v)", shape))
	}
	x.fail(op.Need(s.First >= 0 && s.First < s.Len, "the first token must be in [0, %d) (got %d)", s.Len, s.First))
	if s.Lengths != nil {
		x.fail(op.WantShape([]tensor.Shape{s.Lengths.Shape()}, 0, "lengths", s.Rows[0].Shape()[0]/s.Len))
	}
}

// block is the computation of a block, with what goes in and comes out.
type block struct {
	sides   sides
	inputs  gorgonia.Nodes // of each operand of rows and each shared one
	spans   [2]*gorgonia.Node
	slopes  *gorgonia.Node // gradients of the scores
	scores  gorgonia.Nodes // and the values beside them
	wrt     []int          // inputs that have a gradient
	grads   gorgonia.Nodes // of those
	runs    int
	print   string
	forward *exec.Nested
	back    *exec.Nested
}

// build makes the computation for blocks of the host, or of a device.
func (x *scores) build(build func(b *Block) []Matrix, device bool, shared gorgonia.Nodes) *block {
	most, contexts := x.most(device)
	b, g := &block{runs: 1}, gorgonia.NewGraph()
	at := &Block{graph: g}
	for k := range b.sides {
		s := x.side(k)
		tokens := min(max(most[k], s.Len), x.count[k]*s.Len)
		b.sides[k] = room{Len: s.Len, Tokens: tokens / s.Len * s.Len, Sequences: tokens / s.Len}
		if (s.Lengths != nil || s.First > 0) && !device { // a device leaves no padding out
			b.sides[k].Sequences = min(max(tokens/s.Len, tokens/fewTokens), x.count[k])
		}
		if k == 1 {
			b.sides[k].Sequences = min(b.sides[k].Sequences, contexts)
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
		of := func(name string, nodes gorgonia.Nodes, axis Axis) (list []Features) {
			for i, n := range nodes {
				rows := input(fmt.Sprintf("%s %d of side %d", name, i, k), tensor.Shape{b.sides[k].Size(axis), n.Shape()[1]})
				list, b.inputs = append(list, Features{node: rows, side: SideOf(k), axis: axis}), append(b.inputs, rows)
			}
			return list
		}
		at.rows[k], at.whole[k] = of("rows", x.side(k).Rows, Tokens), of("wholes", x.side(k).Wholes, Sequences)
	}
	for i, n := range shared {
		at.shared = append(at.shared, input(fmt.Sprintf("shared %d", i), n.Shape()))
	}
	b.inputs = append(b.inputs, at.shared...)
	for _, out := range build(at) {
		pair := grid{Sequences, Sequences}
		at.need(out.grid.finest(pair) == pair, "the score must have a row and a column for each sequence")
		if out.grid != pair {
			out = out.spread(pair, false)
		}
		b.scores, b.print = append(b.scores, out.node), b.print+fingerprint(out.node)
	}
	b.slopes = input("slopes", b.scores[0].Shape())
	read := reached(b.scores[0])
	var wrt gorgonia.Nodes
	for k, n := range b.inputs {
		if read[n.ID()] {
			b.wrt, wrt = append(b.wrt, k), append(wrt, n)
		}
	}
	grads, err := gorgonia.Grad(op.Apply(weighed(), b.scores[0], b.slopes), wrt...)
	x.fail(err)
	b.grads = grads
	b.forward = &exec.Nested{Graph: g, Outputs: b.scores, Runs: b.runs, Partial: true}
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

// reached are the nodes that a gradient of out goes to.
func reached(out *gorgonia.Node) map[int64]bool {
	seen := map[int64]bool{}
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if seen[n.ID()] {
			return
		}
		seen[n.ID()] = true
		if o, ok := n.Op().(gorgonia.SDOp); ok {
			for i, has := range o.DiffWRT(o.Arity()) {
				if has {
					visit(op.Operand(n, i))
				}
			}
		}
	}
	visit(out)
	return seen
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
	args := fmt.Sprint(x.host.print, x.of, x.floats, x.lengths, x.Transposed)
	for k := range 2 {
		s := x.side(k)
		args += fmt.Sprintf(" %d-%d", s.First, s.Len)
	}
	forward := *x.host.forward
	forward.OnDevice = x.device.forward
	o := &op.Op{
		Kind: x.Kind, Args: args, Diff: make([]bool, x.operands), Nested: &forward,
		Shape:   func([]tensor.Shape) (tensor.Shape, error) { return x.shape(), nil },
		Scratch: func(in []tensor.Shape, _ int) int { return x.scratch(x.host, false) },
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, false) },
		Aux:     func([]tensor.Shape) []exec.AuxSpec { return x.beside() },
		On:      x.onCUDA(false),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d := op.Apply(x.gradient(args), append(slices.Clone(in), dy)...)
			grads := make(gorgonia.Nodes, x.operands)
			for i, k := range x.host.wrt {
				if grads[k] = d; i > 0 {
					grads[k] = op.Take(d, i-1, in[k].Shape())
				}
			}
			return grads
		},
	}
	for _, k := range x.host.wrt {
		o.Diff[k] = true
	}
	return o
}

// beside are the values of pairs beside the scores.
func (x *scores) beside() []exec.AuxSpec {
	if n := len(x.host.scores) - 1; n > 0 {
		return []exec.AuxSpec{{Shape: append(x.shape(), n)}}
	}
	return nil
}

// gradient is the op of the gradients: that of the first operand that has one, and as auxiliary results the others.
func (x *scores) gradient(args string) *op.Op {
	back := *x.host.back
	back.OnDevice = x.device.back
	return &op.Op{
		Kind: x.Kind + " gradients", Args: args, Diff: make([]bool, x.operands+1), Nested: &back,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[x.host.wrt[0]].Clone(), op.Need(in[x.operands].Eq(x.shape()), "dy must have shape %v", x.shape())
		},
		Aux: func(in []tensor.Shape) (list []exec.AuxSpec) {
			for _, k := range x.host.wrt[1:] {
				list = append(list, exec.AuxSpec{Shape: in[k].Clone()})
			}
			return list
		},
		Scratch: func([]tensor.Shape, int) int { return x.scratch(x.host, true) },
		Host:    func(c *exec.Call) (exec.Step, error) { return x.step(c, true) },
		On:      x.onCUDA(true),
	}
}

// onCUDA is the step for the CUDA device.
func (x *scores) onCUDA(back bool) map[string]exec.DeviceStep {
	b := x.device
	on := oncuda.Scored{
		Inputs: b.inputs, Spans: b.spans, Slopes: b.slopes, Scores: b.scores, Wrt: b.wrt, Grads: b.grads,
		Lengths: x.lengths, Count: x.count, Operands: x.operands, Back: back,
	}
	on.Step[0], on.Step[1] = x.steps()
	for k := range 2 {
		on.First[k], on.Sides[k] = x.side(k).First, b.sides[k]
	}
	for _, of := range x.of {
		on.Of = append(on.Of, oncuda.Operand{Side: of.side, Axis: of.axis})
	}
	return on.Steps()
}

// scratch is the memory of packed rows and of the gradients of scores.
func (x *scores) scratch(b *block, back bool) (n int) {
	for _, in := range b.inputs[:x.rows] {
		n += in.Shape().TotalSize()
	}
	if back {
		n += b.slopes.Shape().TotalSize()
	}
	return n
}
