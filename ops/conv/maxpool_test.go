package conv

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestMaxPool compares values with the definition and gradients with finite differences, of values that are all different.
func TestMaxPool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 77))
	for _, s := range shapes {
		g := s.g
		x := optest.F32s(r, "x", s.b*g.in(), s.in)
		for i, k := range r.Perm(len(x.Floats())) {
			x.Floats()[i] = float32(k) / 16
		}
		want := make([]float32, 0, s.b*g.out()*s.in)
		for b := range s.b {
			for i := range g.OutHeight() {
				for j := range g.OutWidth() {
					for c := range s.in {
						top := math.Inf(-1)
						for u := range g.Kernel {
							for v := range g.Kernel {
								row, col := i*g.Stride+u-g.Pad, j*g.Stride+v-g.Pad
								if row >= 0 && col >= 0 && row < g.Height && col < g.Width {
									top = max(top, float64(x.Floats()[((b*g.Height+row)*g.Width+col)*s.in+c]))
								}
							}
						}
						want = append(want, float32(top))
					}
				}
			}
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return MaxPool(ns[0], g) }
		if got := optest.Eval(t, build, x); !slices.Equal(got.F32, want) {
			t.Errorf("%v: got %v, want %v", g, got.F32, want)
		}
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

// TestMaxPoolNaN: a window with a NaN has one, and it gets the gradient.
func TestMaxPoolNaN(t *testing.T) {
	x := optest.In("x", []int{4, 1}, []float32{1, float32(math.NaN()), 3, 2})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MaxPool(ns[0], Geometry{2, 2, 2, 1, 0}) }
	if got := optest.Eval(t, build, x).F32[0]; got == got {
		t.Errorf("got %g", got)
	}
	grads, _ := optest.Gradients(t, build, []int{0}, x)
	for i, g := range grads[0] {
		if (g != 0) != (i == 1) {
			t.Errorf("gradient of element %d is %g", i, g)
		}
	}
}
