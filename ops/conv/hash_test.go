package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 72))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 36, 2), optest.F32s(r, "w", 3, 2, 2, 2), optest.F32s(r, "v", 3), optest.F32s(r, "y", 36, 3), optest.F32s(r, "one", 3, 2, 1, 1), optest.F32s(r, "planes", 1, 2, 6, 6)})
	x, w, v, y, one, planes := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5]
	g := Geometry{6, 6, 2, 2, 0}
	geometries := []Geometry{g, {6, 6, 2, 1, 0}, {6, 6, 2, 2, 1}, {4, 9, 2, 2, 0}, {9, 4, 2, 2, 0}}
	groups := map[string][]func() *gorgonia.Node{
		"planes": {
			func() *gorgonia.Node { return FromPlanes(planes) },
			optest.Variant(toPlanes(tensor.Shape{1, 3, 6, 6}), y),
			optest.Variant(toPlanes(tensor.Shape{1, 3, 4, 9}), y),
		},
	}
	add := func(name string, build func() *gorgonia.Node) { groups[name] = append(groups[name], build) }
	for _, g := range geometries {
		add("conv", func() *gorgonia.Node { return Conv(x, w, g) })
		add("max pool", func() *gorgonia.Node { return MaxPool(x, g) })
	}
	add("max pool", func() *gorgonia.Node { return MaxPool(x, Geometry{6, 6, 1, 2, 0}) })
	for _, g := range []Geometry{{6, 6, 1, 1, 0}, {4, 9, 1, 1, 0}} {
		add("conv dx", optest.Variant(g.gradX(x.Shape()), y, one))
		add("conv dw", optest.Variant(g.gradW(one.Shape()), y, x))
		pooled := MaxPool(x, g)
		add("max pool dx", optest.Variant(g.maxPoolGrad(x.Shape()), pooled, pooled))
	}
	fold := func(g Geometry, eps float32, relu bool) func() *gorgonia.Node {
		return func() *gorgonia.Node {
			return Folded(w, g, nn.BatchNormArgs{X: x, Gamma: v, Beta: v, Mean: v, Variance: v, Eps: eps, ReLU: relu})
		}
	}
	groups["folded"] = []func() *gorgonia.Node{fold(g, 1e-5, false), fold(g, 1e-5, true), fold(g, 1.0000001e-5, false), fold(geometries[1], 1e-5, false)}
	optest.CheckHashes(t, groups)
}
