package arith

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// elementOps are the ops of this package that work element by element.
func elementOps() []optest.Elements {
	type nodes = gorgonia.Nodes
	combine := func(weights ...float32) func(ns nodes) *gorgonia.Node {
		return func(ns nodes) *gorgonia.Node { return Combine(weights, ns[:len(weights)]...) }
	}
	scalar := []int{1}
	return []optest.Elements{
		{Name: "add", Operands: 2, Build: func(ns nodes) *gorgonia.Node { return Add(ns[0], ns[1]) },
			Of: func(x []float64) float64 { return x[0] + x[1] }},
		{Name: "add twice", Operands: 2, Build: func(ns nodes) *gorgonia.Node { return Add(Add(ns[0], ns[0]), ns[1]) },
			Of: func(x []float64) float64 { return 2*x[0] + x[1] }},
		// y and s are constants: no gradient flows to them.
		{Name: "add scaled", Operands: 3, Scalars: []int{2}, WRT: []int{0},
			Build: func(ns nodes) *gorgonia.Node { return AddScaled(ns[0], ns[1], ns[2]) },
			Of:    func(x []float64) float64 { return x[0] + x[2]*x[1] }},
		{Name: "square", Operands: 1, Build: func(ns nodes) *gorgonia.Node { return Square(ns[0]) },
			Of: func(x []float64) float64 { return x[0] * x[0] }},
		{Name: "combine one", Operands: 1, Build: combine(.4), Of: func(x []float64) float64 { return .4 * x[0] }},
		{Name: "combine two", Operands: 2, Build: combine(.25, 1), Of: func(x []float64) float64 { return .25*x[0] + x[1] }},
		{Name: "combine three", Operands: 3, Build: combine(1, -2, .5),
			Of: func(x []float64) float64 { return x[0] - 2*x[1] + .5*x[2] }},
		{Name: "mul scalar", Operands: 2, Scalars: scalar,
			Build: func(ns nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) },
			Of:    func(x []float64) float64 { return x[0] * x[1] }},
		{Name: "mul exp", Operands: 2, Scalars: scalar, Build: func(ns nodes) *gorgonia.Node { return MulExp(ns[0], ns[1]) },
			Of: func(x []float64) float64 { return x[0] * math.Exp(x[1]) }},
		{Name: "div scalar", Operands: 2, Scalars: scalar, From: .5, To: 1.5,
			Build: func(ns nodes) *gorgonia.Node { return DivScalar(ns[0], ns[1]) },
			Of:    func(x []float64) float64 { return x[0] / x[1] }},
	}
}

func TestElements(t *testing.T) { optest.CheckElements(t, elementOps()) }
