package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestScaledDotBlocks checks a sum of several blocks against float64.
func TestScaledDotBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	x, s := optest.F32s(r, "x", 3, 5000), optest.In("s", nil, []float32{2})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MulScalar(ns[0], ns[1]) }
	grads, _ := optest.Gradients(t, build, []int{1}, x, s)
	w := optest.F32s(rand.New(rand.NewPCG(7, 7)), "test weights", 3, 5000).Data.([]float32)
	var want float64
	for i, v := range x.Data.([]float32) {
		want += float64(v) * float64(w[i])
	}
	optest.Near(t, "ds", grads[0], []float32{float32(want)}, 1e-5)
}
