package relation

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/transport"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/relation/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PlanArgs are the operands and settings of PlanDivergence.
type PlanArgs struct {
	Scores *gorgonia.Node // (N, M) similarities of the trained space
	Target *gorgonia.Node // (N, M) those of the fixed one
	// Epsilon and TargetEpsilon, both > 0, are the weights of the entropy of their plans, in
	// the units of their similarities.
	Epsilon, TargetEpsilon float64
	Iterations             int     // of rows and columns at most, >= 1
	Tolerance              float64 // ends where row sums are off by less than this share; >= 0, 0: 1e-6
}

// PlanDivergence returns the scalar
//
//	KL(P* || P) = sum_ij P*_ij log(P*_ij / P_ij)
//
// of the entropic transport plans P* of Target and P of Scores between N and M items of equal
// mass (KLOT of SOTAlign, arXiv 2602.23353), and as a second scalar how far off P is: the
// largest relative error of a row sum. The masses of a plan sum to 1, so this is the mean over
// rows of the divergence of their conditional distributions. The gradient goes to Scores and is
// (P - P*)/Epsilon, which holds where P has converged: see transport.Plan.KL.
//
// The plans are float64 in memory of the op's own, 32 bytes for each pair, and on a CUDA device
// their potentials alone. NaN or +Inf among the similarities gives a loss that is not finite,
// and so does -Inf among the scores; -Inf in the target is a pair without mass, which the loss
// leaves out.
func PlanDivergence(a PlanArgs) (loss, off *gorgonia.Node) {
	x := plans{
		transport.Options{Epsilon: a.Epsilon, Iterations: a.Iterations, Tolerance: a.Tolerance},
		transport.Options{Epsilon: a.TargetEpsilon, Iterations: a.Iterations, Tolerance: a.Tolerance},
	}
	if !(a.Epsilon > 0) || !(a.TargetEpsilon > 0) || a.Iterations < 1 || !(a.Tolerance >= 0) {
		panic(&op.BuildError{Op: "plan divergence",
			Err: fmt.Errorf("want both eps > 0, at least one iteration and a tolerance >= 0 (got %v, %v, %d and %v)",
				a.Epsilon, a.TargetEpsilon, a.Iterations, a.Tolerance)})
	}
	loss = op.Apply(x.forward(), a.Scores, a.Target)
	return loss, op.Take(loss, 1, tensor.ScalarShape())
}

// plans describes the op.
type plans struct{ own, target transport.Options }

func (x plans) forward() *op.Op {
	return &op.Op{
		Kind: "plan divergence", Args: fmt.Sprintf("eps=%v target=%v iterations=%d tolerance=%v", x.own.Epsilon,
			x.target.Epsilon, x.own.Iterations, x.own.Tolerance),
		Diff: []bool{true, false}, Shape: similarities,
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[0].Clone()}, {Shape: tensor.ScalarShape()}}
		},
		Host: x.prepare, On: oncuda.Plans(x.own, x.target),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{arith.MulScalar(op.Take(out, 0, in[0].Shape()), dy), nil}
		},
	}
}

// similarities is the shape of a loss over similarities of two spaces.
func similarities(in []tensor.Shape) (tensor.Shape, error) {
	return tensor.ScalarShape(), op.All(
		op.Need(len(in[0]) == 2 && in[0][0] > 0 && in[0][1] > 0, "want similarities (N, M)"),
		op.Need(in[0].Eq(in[1]), "the target must have shape %v (got %v)", in[0], in[1]),
	)
}

func (x plans) prepare(c *exec.Call) (exec.Step, error) {
	n, m := c.In[0].Dim(0), c.In[0].Dim(1)
	plan, err := transport.New(c.Engine, n, m)
	if err != nil {
		return nil, err
	}
	target := make([]float64, n*m)
	solve := func(s []float32, o transport.Options) error {
		for i, v := range s {
			plan.S[i] = float64(v)
		}
		return plan.Solve(o)
	}
	return func() error {
		if err := solve(c.In[1].F32, x.target); err != nil {
			return err
		}
		plan.Matrix(target)
		if err := solve(c.In[0].F32, x.own); err != nil {
			return err
		}
		kl, err := plan.KL(target, target)
		if err != nil {
			return err
		}
		for i, v := range target {
			c.Aux[0].F32[i] = float32(v)
		}
		c.Aux[1].F32[0] = float32(plan.Off)
		c.Out.F32[0] = float32(kl)
		return nil
	}, nil
}
