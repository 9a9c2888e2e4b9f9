package op

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Take exposes auxiliary result aux of n's op, which has this shape, as a node. It
// names memory and costs nothing.
func Take(n *gorgonia.Node, aux int, shape tensor.Shape) *gorgonia.Node {
	return Apply(&Op{
		Kind: "take", Args: fmt.Sprintf("aux=%d shape=%v", aux, shape), Diff: []bool{false}, Alias: &[2]int{0, aux},
		Shape: func([]tensor.Shape) (tensor.Shape, error) { return shape.Clone(), nil },
	}, n)
}

// Detach returns n without a way back for gradients: a constant as far as
// differentiation is concerned. It names n's memory and costs nothing.
func Detach(n *gorgonia.Node) *gorgonia.Node {
	o := &Op{
		Kind: "detach", Diff: []bool{false}, Alias: &[2]int{0, -1},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
	}
	o.Ints = n != nil && n.Dtype() == tensor.Int32
	return Apply(o, n)
}
