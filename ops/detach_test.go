package ops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

func TestDetach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 14))
	for _, shape := range append([][]int{{}, {3, 4}}, optest.RandomShapes(r, 6, 9, 40)...) {
		x, y := optest.F32s(r, "x", shape...), optest.F32s(r, "y", shape...)
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			h := nn.GELU(ns[0])
			return arith.Add(arith.Add(op.Detach(h), h), ns[1])
		}
		grads, _ := optest.Gradients(t, build, []int{0}, x, y)
		plain, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return arith.Add(nn.GELU(ns[0]), ns[1]) }, []int{0}, x, y)
		optest.Near(t, "gradient past a detached path", grads[0], plain[0], 0)
		want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			h := nn.GELU(ns[0])
			return arith.Add(arith.Add(h, h), ns[1])
		}, x, y)
		optest.Near(t, "detached value", optest.Eval(t, build, x, y).F32, want.F32, 0)
	}
	ids := optest.I32s("ids", []int32{3, -1}, 2)
	if got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return layout.ConcatInts(op.Detach(ns[0])) }, ids).I32; !slices.Equal(got, []int32{3, -1}) {
		t.Errorf("detached ids: got %v", got)
	}
}
