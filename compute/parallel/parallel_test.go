package parallel

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestSingle: one process sums up to what it has, gathers what it gives, and allocates
// nothing.
func TestSingle(t *testing.T) {
	var g Group = Single{}
	if g.Rank() != 0 || g.Size() != 1 {
		t.Errorf("rank %d of %d", g.Rank(), g.Size())
	}
	x := []float32{1, 2}
	if err := g.Sum(x); err != nil || !slices.Equal(x, []float32{1, 2}) {
		t.Errorf("sum %v, %v", x, err)
	}
	if all, err := g.Gather([]float32{7}, x); err != nil || !slices.Equal(all, []float32{7, 1, 2}) {
		t.Errorf("gathered %v, %v", all, err)
	}
	if all, err := g.GatherInts([]int32{7}, []int32{3}); err != nil || !slices.Equal(all, []int32{7, 3}) {
		t.Errorf("gathered %v, %v", all, err)
	}
	for _, ok := range []bool{true, false} {
		if all, err := g.All(ok); err != nil || all != ok {
			t.Errorf("all of %t: %t, %v", ok, all, err)
		}
	}
	dst := make([]float32, 0, 2)
	if n := testing.AllocsPerRun(10, func() {
		check.OK(t, g.Sum(x))
		check.Get(g.Gather(dst, x))(t)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
