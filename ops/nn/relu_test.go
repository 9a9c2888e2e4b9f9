package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestReLU(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return ReLU(ns[0]) }
	inf := float32(math.Inf(1))
	// max(x, 0) by hand.
	in := []float32{-inf, -1, float32(math.Copysign(0, -1)), 0, 1e-40, 2.5, inf}
	want := []float32{0, 0, 0, 0, 1e-40, 2.5, inf}
	got := optest.Eval(t, build, optest.In("x", tensor.Shape{7}, in)).F32
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("relu(%v) is %v, want %v", in[i], got[i], want[i])
		}
	}
	nan := optest.Eval(t, build, optest.In("x", tensor.Shape{1}, []float32{float32(math.NaN())})).F32
	if !math.IsNaN(float64(nan[0])) {
		t.Errorf("relu(NaN) is %v", nan[0])
	}
	// At 0, where the slope jumps, the gradient is 0 as torch's.
	grads, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return arith.Sum(ReLU(ns[0])) }, []int{0},
		optest.In("x", tensor.Shape{3}, []float32{-1, 0, 1}))
	optest.Near(t, "gradient", grads[0], []float32{0, 0, 1}, 0)
}

func TestReLUErrors(t *testing.T) {
	_, ns := optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 2)), "x", 2), optest.F32s(rand.New(rand.NewPCG(1, 2)), "y", 3)})
	for name, build := range map[string]func(){
		"no operand":   func() { ReLU(nil) },
		"other length": func() { op.Apply(relu.backward(), ns[0], ns[1]) },
	} {
		optest.BuildError(t, name, "", build)
	}
}
