package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// TestBuildErrors gives every op operands that do not fit.
func TestBuildErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 76))
	_, ns := optest.Nodes([]optest.Input{
		optest.F32s(r, "x", 24, 4), optest.F32s(r, "w", 6, 4, 3, 3), optest.F32s(r, "half", 6, 2, 3, 3), optest.F32s(r, "v", 6), optest.F32s(r, "short", 5),
		optest.F32s(r, "y", 24, 6), optest.I32s("lengths", make([]int32, 2), 2),
	})
	x, w, half, v, short, y, lengths := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6]
	g := Geometry{4, 3, 3, 1, 1}
	folded := func(change func(a *nn.BatchNormArgs)) func() {
		a := nn.BatchNormArgs{X: x, Gamma: v, Beta: v, Mean: v, Variance: v, Eps: 1e-5}
		change(&a)
		return func() { Folded(w, g, a) }
	}
	for _, c := range []struct {
		want  string
		build func()
	}{
		{"an image has at least one place (got 0 x 3)", func() { Conv(x, w, Geometry{0, 3, 3, 1, 1}) }},
		{"kernel and stride must be at least 1 (got 3 and 0)", func() { Conv(x, w, Geometry{4, 3, 3, 0, 1}) }},
		{"kernel and stride must be at least 1 (got 0 and 1)", func() { MaxPool(x, Geometry{4, 3, 0, 1, 0}) }},
		{"pad must be in [0, 3), so that each window sees a place (got 3)", func() { Conv(x, w, Geometry{4, 3, 3, 1, 3}) }},
		{"pad must be in [0, 3), so that each window sees a place (got -1)", func() { MaxPool(x, Geometry{4, 3, 3, 1, -1}) }},
		{"a window of 7 places does not fit into images of 4 x 3 with a border of 1", func() { MaxPool(x, Geometry{4, 3, 7, 1, 1}) }},
		{"want x (B*H*W, C)", func() { Conv(v, w, g) }},
		{"rows of x must be a multiple of the 5 x 3 places of an image (got 24)", func() { Conv(x, w, Geometry{5, 3, 3, 1, 1}) }},
		{"want w (Cout, Cin, 1, 1)", func() { Conv(x, w, Geometry{4, 3, 1, 1, 0}) }},
		{"want w (Cout, Cin, 3, 3)", func() { Conv(x, v, g) }},
		{"x has 4 channels, w 2: groups are not supported", func() { Conv(x, half, g) }},
		{"operand 1 is nil", func() { Conv(x, nil, g) }},
		{"want images (B, C, H, W)", func() { FromPlanes(x) }},
		{"beta must have shape (6)", folded(func(a *nn.BatchNormArgs) { a.Beta = short })},
		{"variance must have shape (6)", folded(func(a *nn.BatchNormArgs) { a.Variance = short })},
		{"what is added must have shape (24, 6)", folded(func(a *nn.BatchNormArgs) { a.Add = x })},
		{"eps must not be negative (got -1)", folded(func(a *nn.BatchNormArgs) { a.Eps = -1 })},
		{"lengths are not taken", folded(func(a *nn.BatchNormArgs) { a.Lengths = lengths })},
		{"groups are not supported", func() { Folded(half, g, nn.BatchNormArgs{X: x, Gamma: v, Beta: v, Mean: v, Variance: v}) }},
		{"dy must have shape (24, 6)", func() { op.Apply(g.gradX(tensor.Shape{24, 4}), x, w) }},
		{"dy must have shape (24, 6)", func() { op.Apply(g.gradW(tensor.Shape{6, 4, 3, 3}), x, x) }},
		{"y and dy must have one shape", func() { op.Apply(g.maxPoolGrad(x.Shape()), x, y) }},
	} {
		optest.BuildError(t, c.want, c.want, c.build)
	}
	if g := (Geometry{7, 8, 3, 2, 1}); g.OutHeight() != 4 || g.OutWidth() != 4 {
		t.Errorf("%v has %d x %d places", g, g.OutHeight(), g.OutWidth())
	}
}
