package geometric

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/geometric/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GeometricArgs are the operands of Geometric. D' = Tokens*D is the width of a feature
// before the head, C = Tokens*n_out behind it, K-1 the number of neighbours.
type GeometricArgs struct {
	Anchors    *gorgonia.Node // (B, D')
	Queue      *gorgonia.Node // (Q, D')
	Neighbours *gorgonia.Node // (B, K-1) int32 rows of the queue, of Neighbours; -1: none
	Weight     *gorgonia.Node // (n_out, D) of the head, which projects each token
	Bias       *gorgonia.Node // (n_out) or nil

	// Tokens is how many tokens of width D a feature is made of: 1 for a usual head.
	Tokens int
	// Groups of the C channels are divided by their L2 norms (at least 1e-12): 1 on a
	// sphere, Tokens on a product of spheres, 0 without normalisation.
	Groups int
	// Kernel, Epsilon and Scale: see Options. Unit divides the whole row by its
	// length behind the head too, which is sqrt(Groups).
	Kernel  string
	Epsilon float32
	Scale   string
}

// Geometric returns the geometric regulariser of GeRA (eq. 3 of the paper),
// a scalar:
//
//	1/B sum_x || W(N(x)) - W(phi(N(x))) ||_F^2
//
// N(x) are K points, the anchor x and its neighbours in the queue, phi is the head and W
// the row-normalised kernel matrix of package geometric, which says how points that
// coincide count. An anchor with a neighbour -1 counts 0. The gradient goes to Weight and
// Bias alone: to no feature, and not through W(N(x)).
//
// It works through chunks of anchors whose size depends on the shapes alone, and makes
// the gradient of the head on the way. Results do not depend on the number of threads.
// Products are in float32 whatever the precision of the engine: what counts is the
// difference of features that are nearly equal, which bfloat16 rounds away.
func Geometric(a GeometricArgs) *gorgonia.Node {
	g := &geometricOp{tokens: a.Tokens, groups: a.Groups, bias: a.Bias != nil,
		Options: Options{Kernel: a.Kernel, Epsilon: a.Epsilon, Scale: a.Scale}}
	err := op.All(
		g.Check(),
		op.Need(a.Tokens > 0, "tokens must be at least 1 (got %d)", a.Tokens),
		op.Need(a.Groups >= 0, "groups must not be below 0 (got %d)", a.Groups),
	)
	if err != nil {
		panic(&op.BuildError{Op: "geometric", Err: err})
	}
	in := gorgonia.Nodes{a.Anchors, a.Queue, a.Neighbours, a.Weight}
	if g.bias {
		in = append(in, a.Bias)
	}
	return op.Apply(g.forward(), in...)
}

// Operands of the op.
const (
	gmAnchors = iota
	gmQueue
	gmNeighbours
	gmWeight
	gmBias
)

// geometricOp describes the op.
type geometricOp struct {
	Options
	tokens, groups int
	bias           bool
	// budget is the number of float32 values of gathered features in a chunk; 0 stands
	// for geometricBudget.
	budget int
}

// geometricBudget bounds the gathered features of a chunk: 16 MiB.
const geometricBudget = 4 << 20

func (g *geometricOp) args() string {
	return fmt.Sprintf("tokens=%d groups=%d bias=%t kernel=%s eps=%g scale=%s budget=%d", g.tokens, g.groups, g.bias,
		g.Kernel, g.Epsilon, g.Scale, g.budget)
}

func (g *geometricOp) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, queue, near, w := in[gmAnchors], in[gmQueue], in[gmNeighbours], in[gmWeight]
	if err := op.Need(len(x) == 2 && len(queue) == 2 && len(near) == 2 && len(w) == 2,
		"want anchors (B, D'), a queue (Q, D'), neighbours (B, K-1) and a weight (n_out, D)"); err != nil {
		return nil, err
	}
	return tensor.ScalarShape(), op.All(
		op.Need(queue[1] == x[1], "anchors have %d columns, the queue has %d", x[1], queue[1]),
		op.Need(near[0] == x[0], "there are %d anchors, but neighbours of %d", x[0], near[0]),
		op.Need(w[1]*g.tokens == x[1], "%d tokens for a weight of %d columns make features of %d (got %d)", g.tokens,
			w[1], g.tokens*w[1], x[1]),
		op.Need(g.groups == 0 || g.tokens*w[0]%g.groups == 0,
			"%d groups do not divide the %d channels behind the head", g.groups, g.tokens*w[0]),
		op.Need(!g.bias || in[len(in)-1].Eq(tensor.Shape{w[0]}), "bias must have shape (%d) (got %v)", w[0],
			in[len(in)-1]),
	)
}

func (g *geometricOp) forward() *op.Op {
	o := &op.Op{Kind: "geometric", Args: g.args(), Diff: []bool{false, false, false, true}, Shape: g.shape}
	if g.bias {
		o.Diff = append(o.Diff, true)
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec { // the gradients of weight and bias
		return []exec.AuxSpec{{Shape: in[gmWeight].Clone()}, {Shape: tensor.Shape{in[gmWeight][0]}}}
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return g.sizes(in, threads).total() }
	o.FLOPs = func(in []tensor.Shape) int64 {
		points := int64(in[gmAnchors][0]) * int64(in[gmNeighbours][1]+1) * int64(g.tokens)
		return 2 * 2 * points * int64(in[gmWeight].TotalSize())
	}
	o.Host = func(c *exec.Call) (exec.Step, error) { return newGeometricRun(g, c).step, nil }
	o.On = oncuda.Geometric{
		Options: g.onCUDA(), Groups: g.groupsOf(g.groups), Bias: g.bias,
		Chunk: func(in []tensor.Shape) int { return g.sizes(in, 0).chunk },
	}.Step()
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := gorgonia.Nodes{nil, nil, nil, arith.MulScalar(op.Take(out, 0, in[gmWeight].Shape()), dy)}
		if g.bias {
			grads = append(grads, arith.MulScalar(op.Take(out, 1, in[gmBias].Shape()), dy))
		}
		return grads
	}
	return o
}
