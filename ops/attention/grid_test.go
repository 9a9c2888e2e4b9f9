package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGridBias: of patches a b / c d behind one token, by where a key lies to its query.
func TestGridBias(t *testing.T) {
	table := optest.In("table", []int{12, 1}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 101, 102})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return GridBias(ns[0], 2, 1) }
	// Row 4 is of a patch to itself, 3 of the key on its right, 1 of the key below, 0 of that below on the right.
	optest.Near(t, "bias", optest.Eval(t, build, table).F32, []float32{
		102, 100, 100, 100, 100,
		101, 4, 3, 1, 0,
		101, 5, 4, 2, 1,
		101, 7, 6, 4, 3,
		101, 8, 7, 5, 4,
	}, 0)
	r := rand.New(rand.NewPCG(4, 4))
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node { return GridBias(ns[0], 2, 0) }, []int{0}, 1e-2, 1e-3,
		optest.F32s(r, "table", 9, 2))
}

// TestGridAngles: rows and columns turn a half of the pairs each, and tokens before the patches none.
func TestGridAngles(t *testing.T) {
	for _, columns := range []bool{false, true} {
		a := GridAngles(GridArgs{Before: 1, Grid: 3, Quarter: 2, Theta: 100, At: func(p int) float64 { return float64(p) + .5 }, ColumnsFirst: columns})
		for i := range a.Pairs {
			if a.Sin[i] != 0 || a.Cos[i] != 1 {
				t.Errorf("the token before the patches is turned by %v, %v", a.Sin[i], a.Cos[i])
			}
		}
		for p := range 9 {
			axes := []int{p / 3, p % 3}
			if columns {
				axes[0], axes[1] = axes[1], axes[0]
			}
			for i := range a.Pairs {
				angle := (float64(axes[i/2]) + .5) / math.Pow(10, float64(i%2))
				if got := a.Sin[(1+p)*a.Pairs+i]; math.Abs(float64(got)-math.Sin(angle)) > 1e-6 {
					t.Errorf("patch %d, pair %d: the sine is %v, want that of %v", p, i, got, angle)
				}
			}
		}
	}
}
