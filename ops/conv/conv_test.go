package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// shapes are geometries with images and channels that differ in all that the code tells apart: windows, strides,
// borders, sizes that a stride does not divide, and more places than a block has.
var shapes = []struct {
	b, in, out int
	g          Geometry
}{
	{1, 1, 1, Geometry{1, 1, 1, 1, 0}},
	{2, 3, 5, Geometry{7, 7, 3, 2, 1}},
	{3, 4, 2, Geometry{7, 6, 3, 1, 1}},
	{2, 5, 3, Geometry{5, 8, 1, 1, 0}},
	{2, 5, 3, Geometry{7, 7, 1, 2, 0}},
	{5, 2, 4, Geometry{6, 7, 3, 2, 0}},
	{2, 3, 4, Geometry{9, 11, 7, 2, 3}},
	{1, 2, 3, Geometry{4, 3, 3, 3, 2}},
	{2, 16, 16, Geometry{4, 5, 3, 1, 1}},
	{6, 2, 2, Geometry{2, 2, 2, 2, 0}},
	{2, 2, 3, Geometry{40, 17, 3, 1, 1}},
}

// naive is the definition of Conv in float64.
func naive(b, in, out int, g Geometry, x, w []float32) []float32 {
	ho, wo := g.OutHeight(), g.OutWidth()
	y := make([]float32, b*ho*wo*out)
	for n := range b {
		for i := range ho {
			for j := range wo {
				for o := range out {
					var sum float64
					for u := range g.Kernel {
						for v := range g.Kernel {
							r, s := i*g.Stride+u-g.Pad, j*g.Stride+v-g.Pad
							if r < 0 || s < 0 || r >= g.Height || s >= g.Width {
								continue
							}
							for c := range in {
								sum += float64(w[((o*in+c)*g.Kernel+u)*g.Kernel+v]) * float64(x[((n*g.Height+r)*g.Width+s)*in+c])
							}
						}
					}
					y[((n*ho+i)*wo+j)*out+o] = float32(sum)
				}
			}
		}
	}
	return y
}

// TestConv compares values with the definition and gradients with finite differences.
func TestConv(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 71))
	for _, s := range shapes {
		k := s.g.Kernel
		in := []optest.Input{optest.F32s(r, "x", s.b*s.g.in(), s.in), optest.F32s(r, "w", s.out, s.in, k, k)}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], s.g) }
		optest.Near(t, "conv", optest.Eval(t, build, in...).F32, naive(s.b, s.in, s.out, s.g, in[0].Floats(), in[1].Floats()), 2e-6)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 2e-3, in...)
		if t.Failed() {
			t.Fatalf("%d images, %d to %d channels, %v", s.b, s.in, s.out, s.g)
		}
	}
}
