package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

func TestArcCos(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return ArcCos(ns[0]) }
	for _, shape := range append([][]int{{}, {9}, {5, 2000}}, randomShapes(r, 6, 9, 40)...) {
		x := f32s(r, "x", shape...)
		want := make([]float32, len(x.floats()))
		for i := range x.floats() {
			x.floats()[i] *= 0.9 // finite differences want room
			want[i] = float32(math.Acos(float64(x.floats()[i])))
		}
		near(t, "arccos", eval(t, build, x).F32, want, 2e-7)
		checkGrad(t, build, []int{0}, 1e-3, 1e-3, x)
	}
	// The ends and beyond: acos(float32(1-1e-6)) from Python, and no gradient.
	x := input{"x", []int{6}, []float32{1, -1, 1.5, -1.5, 0, 0.999}}
	near(t, "at the ends", eval(t, build, x).F32, []float32{1.42357236e-3, math.Pi - 1.42357236e-3, 1.42357236e-3, math.Pi - 1.42357236e-3, math.Pi / 2, 0.0447247992}, 1e-6)
	grads, _ := gradients(t, build, []int{0}, x)
	for i, g := range grads[0] {
		if (g == 0) != (i < 4) || math.IsInf(float64(g), 0) {
			t.Errorf("gradient at %v: got %v", x.floats()[i], g)
		}
	}
}

func TestArcCosErrors(t *testing.T) {
	wantBuildError(t, "arccos", "operand 0 is nil", func() { ArcCos(nil) })
}
