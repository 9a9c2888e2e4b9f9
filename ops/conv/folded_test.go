package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestFolded: a folded convolution has the bits of the convolution and the batch norm that it stands for.
func TestFolded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 75))
	for _, s := range shapes {
		variance := optest.F32s(r, "variance", s.out)
		for i, v := range variance.Floats() {
			variance.Floats()[i] = v * v
		}
		in := []optest.Input{
			optest.F32s(r, "x", s.b*s.g.in(), s.in), optest.F32s(r, "w", s.out, s.in, s.g.Kernel, s.g.Kernel), optest.F32s(r, "gamma", s.out), optest.F32s(r, "beta", s.out),
			optest.F32s(r, "mean", s.out), variance, optest.F32s(r, "add", s.b*s.g.out(), s.out),
		}
		for _, relu := range []bool{false, true} {
			for _, added := range []bool{false, true} {
				args := func(x *gorgonia.Node, ns gorgonia.Nodes) nn.BatchNormArgs {
					a := nn.BatchNormArgs{X: x, Gamma: ns[2], Beta: ns[3], Mean: ns[4], Variance: ns[5], Eps: 1e-5, ReLU: relu}
					if added {
						a.Add = ns[6]
					}
					return a
				}
				got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Folded(ns[1], s.g, args(ns[0], ns)) }, in...)
				want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
					y, _, _ := nn.BatchNorm(args(Conv(ns[0], ns[1], s.g), ns))
					return y
				}, in...)
				if !slices.Equal(got.F32, want.F32) {
					t.Errorf("%v, ReLU %t, residual %t: other bits", s.g, relu, added)
				}
			}
		}
	}
}
