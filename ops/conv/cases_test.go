package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// cases are the ops of this package with operands that are large enough for several threads.
func cases() []optest.Case {
	r := rand.New(rand.NewPCG(1, 73))
	const b, cin, cout = 6, 19, 37
	conv := func(name string, g Geometry) optest.Case {
		return optest.Case{Name: name, WRT: []int{0, 1},
			Inputs: []optest.Input{optest.F32s(r, "x", b*g.in(), cin), optest.F32s(r, "w", cout, cin, g.Kernel, g.Kernel)},
			Build:  func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], g) }}
	}
	half := Geometry{17, 12, 3, 2, 1}
	v := func(name string) optest.Input {
		x := optest.F32s(r, name, cout)
		for i, f := range x.Floats() {
			x.Floats()[i] = f*f + 1e-3
		}
		return x
	}
	return []optest.Case{
		conv("conv", Geometry{17, 12, 3, 1, 1}),
		conv("conv of one place", Geometry{17, 12, 1, 1, 0}),
		conv("conv of one place of four", Geometry{17, 12, 1, 2, 0}),
		conv("conv with a stride", half),
		{Name: "folded", Inputs: []optest.Input{optest.F32s(r, "x", b*half.in(), cin), optest.F32s(r, "w", cout, cin, 3, 3), v("gamma"), v("beta"), v("mean"), v("variance"), optest.F32s(r, "add", b*half.out(), cout)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Folded(ns[1], half, nn.BatchNormArgs{X: ns[0], Gamma: ns[2], Beta: ns[3], Mean: ns[4], Variance: ns[5], Eps: 1e-5, Add: ns[6], ReLU: true})
			}},
		{Name: "max pool", Inputs: []optest.Input{optest.F32s(r, "x", b*half.in(), cin)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return MaxPool(ns[0], half) }},
		{Name: "from planes", Inputs: []optest.Input{optest.F32s(r, "images", b, 3, 70, 60)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return FromPlanes(ns[0]) }},
	}
}

// TestCases: no allocation in a run, the same bits on any number of threads, every element written.
func TestCases(t *testing.T) { optest.CheckCases(t, cases()) }
