package arith

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/expr"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// Combine returns sum_k weights_k xs_k for arrays of one shape, with gradients to all:
// several scores of the same pairs, say.
func Combine(weights []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	if len(weights) != len(xs) || len(xs) == 0 {
		panic(&op.BuildError{Op: "combine",
			Err: fmt.Errorf("want a weight for each of at least one array (got %d weights and %d arrays)",
				len(weights), len(xs))})
	}
	sum := expr.Number(weights[0]).Times(expr.X(0))
	for k, w := range weights[1:] {
		sum = sum.PlusTimes(expr.Number(w), expr.X(k+1))
	}
	return expr.Apply(expr.Op{Kind: "combine", Value: sum}, xs...)
}

// Times returns a*x for a constant a.
func Times(a float32, x *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "times", Value: expr.Number(a).Times(expr.X(0))}, x)
}
