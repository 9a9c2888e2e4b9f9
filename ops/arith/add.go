package arith

import (
	"github.com/geoalign/geoalign/ops/expr"
	"gorgonia.org/gorgonia"
)

// Add returns x + y for two arrays of one shape. The gradient of a sum is that of both terms: no op at all.
func Add(x, y *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "add", Value: expr.X(0).Plus(expr.X(1))}, x, y)
}

// AddScaled returns x + s*y for x and y of one shape and a scalar s. The gradient goes
// to x alone: y is a constant that shifts it.
func AddScaled(x, y, s *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{
		Kind: "add scaled", Value: expr.X(0).PlusTimes(expr.X(2), expr.X(1)), Layout: expr.Alike(2), Constant: []int{1, 2},
	}, x, y, s)
}

// Square returns x*x for x of any shape.
func Square(x *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "square", Value: expr.X(0).Square()}, x)
}
