package ops

import (
	"reflect"

	"github.com/geoalign/geoalign/internal/exec"
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

// terms returns the gradients that n is the sum of, from left to right: n alone if it
// is none of Gorgonia's sums.
func terms(n *gorgonia.Node) gorgonia.Nodes {
	if reflect.TypeOf(n.Op()) != sumType || n.Op().String() != sumName {
		return gorgonia.Nodes{n}
	}
	return append(terms(operandNode(n, 0)), terms(operandNode(n, 1))...)
}

// operandNode returns operand i of n.
func operandNode(n *gorgonia.Node, i int) *gorgonia.Node {
	it := n.Graph().From(n.ID())
	for it.Next() {
		if i == 0 {
			return it.Node().(*gorgonia.Node)
		}
		i--
	}
	panic("ops: " + n.String() + " has fewer operands")
}

// zeros returns zeros of its operand's shape.
func zeros() *op {
	return &op{
		kind: "zeros", diff: []bool{false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			return func() error { clear(c.Out.F32); return nil }, nil
		},
	}
}
