package geodesic

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// TestPoolSimilarityFuzz compares pools of any size, pointer and number of columns with
// the queue that the batch was written into, and the gradient with finite differences.
func TestPoolSimilarityFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	for i := range 60 {
		k := randomGeoCase(r)
		k.count = 0 // plain cosines
		in := k.inputs()
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return pool.Similarity(ns[0], k.pool(ns)) }
		optest.Near(t, "scores", optest.Eval(t, build, in...).F32, k.oracle().scores(), 1e-5)
		optest.CheckGrad(t, build, []int{0}, 1e-1, 1e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: %d rows, batch %d at %d of %d, cols %d", i, k.b, k.batch, k.pointer, k.n, k.cols)
		}
	}
}
