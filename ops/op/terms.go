package op

import (
	"reflect"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// sumType and sumName identify the addition that Gorgonia makes of several gradients
// of one node, whose type is not exported.
var sumType, sumName = func() (reflect.Type, string) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	y := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("y"))
	n := gorgonia.Must(gorgonia.Add(x, y))
	return reflect.TypeOf(n.Op()), n.Op().String()
}()

// Terms returns the gradients that n is the sum of, from left to right: n alone if it
// is none of Gorgonia's sums.
func Terms(n *gorgonia.Node) gorgonia.Nodes {
	if reflect.TypeOf(n.Op()) != sumType || n.Op().String() != sumName {
		return gorgonia.Nodes{n}
	}
	return append(Terms(Operand(n, 0)), Terms(Operand(n, 1))...)
}

// Operand returns operand i of n.
func Operand(n *gorgonia.Node, i int) *gorgonia.Node {
	it := n.Graph().From(n.ID())
	for it.Next() {
		if i == 0 {
			return it.Node().(*gorgonia.Node)
		}
		i--
	}
	panic("ops: " + n.String() + " has fewer operands")
}
