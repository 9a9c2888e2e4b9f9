package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// take exposes auxiliary result aux of n's op, which has this shape, as a node. It
// names memory and costs nothing.
func take(n *gorgonia.Node, aux int, shape tensor.Shape) *gorgonia.Node {
	return apply(&op{
		kind: "take", args: fmt.Sprintf("aux=%d shape=%v", aux, shape), diff: []bool{false}, alias: &[2]int{0, aux},
		shape: func([]tensor.Shape) (tensor.Shape, error) { return shape.Clone(), nil },
	}, n)
}

// Detach returns n without a way back for gradients: a constant as far as
// differentiation is concerned. It names n's memory and costs nothing.
func Detach(n *gorgonia.Node) *gorgonia.Node {
	o := &op{
		kind: "detach", diff: []bool{false}, alias: &[2]int{0, -1},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
	}
	o.ints = n != nil && n.Dtype() == tensor.Int32
	return apply(o, n)
}
