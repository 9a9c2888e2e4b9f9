package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGrouped: a convolution of groups is that of all channels with weights that are 0 elsewhere.
func TestGrouped(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	for _, c := range []struct {
		g                  Geometry
		b, in, out, groups int
	}{{Geometry{1, 1, 1, 1, 0}, 1, 2, 2, 2}, {Geometry{5, 4, 3, 1, 1}, 2, 6, 9, 3}, {Geometry{9, 7, 3, 2, 1}, 2, 8, 4, 2}, {Geometry{6, 6, 1, 2, 0}, 3, 6, 4, 2}, {Geometry{6, 6, 3, 1, 1}, 1, 5, 3, 1}, {Geometry{6, 6, 3, 1, 1}, 1, 5, 5, 5}} {
		k, in, out := c.g.Kernel*c.g.Kernel, c.in/c.groups, c.out/c.groups
		x, w := optest.F32s(r, "x", c.b*c.g.Height*c.g.Width, c.in), optest.F32s(r, "w", c.out, in, c.g.Kernel, c.g.Kernel)
		whole := optest.F32s(r, "whole", c.out, c.in, c.g.Kernel, c.g.Kernel)
		clear(whole.Floats())
		for o := range c.out {
			copy(whole.Floats()[(o*c.in+o/out*in)*k:][:in*k], w.Floats()[o*in*k:])
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Grouped(ns[0], ns[1], c.groups, c.g) }
		want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], c.g) }, x, whole)
		optest.Near(t, "grouped", optest.Eval(t, build, x, w).F32, want.F32, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 5e-3, x, w)
	}
	optest.BuildError(t, "groups", "3 groups must divide", func() {
		_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 36, 4), optest.F32s(r, "w", 3, 1, 3, 3)})
		Grouped(ns[0], ns[1], 3, Geometry{6, 6, 3, 1, 1})
	})
}
