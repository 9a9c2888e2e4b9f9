package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestResponses: the norms of the channels of two places are 5 and 13, their mean 9; of an image of zeros all is 0.
func TestResponses(t *testing.T) {
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Responses(ns[0], 2) }
	x := optest.In("x", []int{4, 2}, []float32{3, -5, 4, 12, 0, 0, 0, 0})
	optest.Near(t, "responses", optest.Eval(t, build, x).F32, []float32{15. / 9, -65. / 9, 20. / 9, 156. / 9, 0, 0, 0, 0}, 1e-5)
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Responses(ns[0], 3) }, []int{0}, 1e-2, 5e-3,
		optest.F32s(rand.New(rand.NewPCG(1, 9)), "x", 6, 5))
	optest.BuildError(t, "places", "want x (B*4, C)", func() {
		_, ns := optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 9)), "x", 6, 5)})
		Responses(ns[0], 4)
	})
}
