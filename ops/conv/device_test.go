package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/conv/internal/oncuda"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestCUDA computes the ops of this package on the device: channels in fours and not, windows that overlap, leave places out or
// see the border alone, several chunks of images, and gradients that are added to what is there.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 5))
	list := cases()
	conv := func(name string, b, cin, cout int, g Geometry) {
		list = append(list, optest.Case{Name: name, WRT: []int{0, 1},
			Inputs: []optest.Input{optest.F32s(r, "x", b*g.in(), cin), optest.F32s(r, "w", cout, cin, g.Kernel, g.Kernel)},
			Build:  func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], g) }})
	}
	for i, g := range []Geometry{{9, 7, 7, 2, 3}, {7, 6, 3, 2, 0}, {8, 8, 3, 3, 1}, {3, 3, 3, 1, 2}, {7, 5, 1, 2, 0}, {4, 5, 2, 3, 1}, {3, 4, 1, 1, 0}} {
		conv(fmt.Sprintf("conv %d", i), 2, 4, 8, g)
		conv(fmt.Sprintf("conv %d of odd channels", i), 3, 3, 5, g)
	}
	list = append(list,
		optest.Case{Name: "one image and weights twice", WRT: []int{0, 1},
			Inputs: []optest.Input{optest.F32s(r, "x", 2*30, 4), optest.F32s(r, "w", 4, 4, 3, 3)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				g := Geometry{5, 6, 3, 1, 1}
				return arith.Add(Conv(ns[0], ns[1], g), Conv(Conv(ns[0], ns[1], g), ns[1], g))
			}},
		optest.Case{Name: "one place twice", WRT: []int{0, 1},
			Inputs: []optest.Input{optest.F32s(r, "x", 2*30, 4), optest.F32s(r, "w", 4, 4, 1, 1)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				g := Geometry{5, 6, 1, 1, 0}
				return arith.Add(Conv(ns[0], ns[1], g), Conv(Conv(ns[0], ns[1], g), ns[1], g))
			}},
		optest.Case{Name: "folded in fours", Inputs: []optest.Input{optest.F32s(r, "x", 60, 8), optest.F32s(r, "w", 12, 8, 1, 1), optest.F32s(r, "gamma", 12), optest.F32s(r, "beta", 12),
			optest.F32s(r, "mean", 12), optest.In("variance", []int{12}, positive(r, 12))},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Folded(ns[1], Geometry{5, 6, 1, 1, 0}, nn.BatchNormArgs{X: ns[0], Gamma: ns[2], Beta: ns[3], Mean: ns[4], Variance: ns[5], Eps: 1e-5})
			}},
	)
	for i, g := range []Geometry{{7, 6, 2, 2, 0}, {4, 4, 3, 2, 1}, {5, 5, 2, 3, 1}, {6, 6, 3, 1, 2}} {
		x := optest.F32s(r, "x", 2*g.in(), 3)
		for j, v := range x.Floats() {
			x.Floats()[j] = float32(math.Round(float64(v) * 2)) // of equal values the first
		}
		list = append(list, optest.Case{Name: fmt.Sprintf("max pool %d", i), Inputs: []optest.Input{x}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return MaxPool(ns[0], g) }})
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		conv("large stem", 16, 3, 64, Geometry{224, 224, 7, 2, 3})
		conv("large conv", 16, 64, 64, Geometry{56, 56, 3, 1, 1})
		conv("large conv with a stride", 16, 128, 128, Geometry{56, 56, 3, 2, 1})
		conv("large conv of one place", 16, 256, 64, Geometry{56, 56, 1, 1, 0})
	}
	optest.CheckCUDA(t, list)
}

// TestCUDAChunks computes images in several chunks: each is larger than the budget is for.
func TestCUDAChunks(t *testing.T) {
	d := cudatest.Open(t)
	b, g := 5, Geometry{40, 40, 3, 1, 1}
	if !cudatest.Emulated(d) {
		b, g = 50, Geometry{56, 56, 3, 1, 1}
	}
	budget := oncuda.ColumnBudget
	oncuda.ColumnBudget = int64(2 * g.out() * 9 * 4)
	defer func() { oncuda.ColumnBudget = budget }()
	r := rand.New(rand.NewPCG(47, 6))
	optest.CheckCUDA(t, []optest.Case{{Name: "chunks", WRT: []int{0, 1},
		Inputs: []optest.Input{optest.F32s(r, "x", b*g.in(), 4), optest.F32s(r, "w", 8, 4, 3, 3)},
		Build:  func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], g) }}})
}

// positive returns n values above 0.
func positive(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() + 0.1
	}
	return x
}
