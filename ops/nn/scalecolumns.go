package nn

import (
	"github.com/geoalign/geoalign/ops/expr"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ScaleColumns returns x (R, D) with column d times scale[d], for scale (D): the layer scale
// of Touvron et al. 2021 (equation 2).
func ScaleColumns(x, scale *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{
		Kind: "scale columns", Value: expr.X(0).Times(expr.X(1)),
		Layout: func(in []tensor.Shape) (expr.Layout, error) {
			if err := op.Need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return expr.Layout{}, err
			}
			return everyRow(in[0], 0, 2), op.WantVector(in[1], "scale", in[0][1])
		},
		Sum: map[int]func(*gorgonia.Node) *gorgonia.Node{1: sumsOfColumns(0, scale)},
	}, x, scale)
}

// everyRow is the layout of a matrix x beside vectors that each of its rows reads, from element from on.
func everyRow(x tensor.Shape, from, operands int) expr.Layout {
	l := expr.Layout{Shape: x.Clone(), Axes: x, Views: make([]expr.View, 1, operands)}
	for range operands - 1 {
		l.Views = append(l.Views, expr.View{From: from, Strides: []int{0, 1}})
	}
	return l
}

// sumsOfColumns sums the gradients of such a vector.
func sumsOfColumns(from int, v *gorgonia.Node) func(*gorgonia.Node) *gorgonia.Node {
	return func(d *gorgonia.Node) *gorgonia.Node { return op.Apply(columnSums(from, v.Shape()[0]), d) }
}
