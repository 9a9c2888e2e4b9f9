package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDAShadows runs chains in which results are read rounded and not, see exec.Half: blocks that carry the sum on and blocks
// that carry the norm on, an image's way into a tower, and rows that have no shadow, being no multiple of 16 bytes.
func TestCUDAShadows(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	var cases []optest.Case
	for _, cols := range []int{32, 36, 768} {
		rows := 45
		if cols > 100 {
			rows = 6
		}
		f := func(name string, shape ...int) optest.Input { return optest.F32s(r, name, shape...) }
		in := []optest.Input{f("x", rows, cols), f("w", cols, cols), f("v", cols, cols), f("b", cols), f("gamma", cols), f("beta", cols),
			optest.I32s("key", []int32{7, -8}, 2)}
		for _, pre := range []bool{true, false} {
			for _, keep := range []float32{0, 0.75} {
				cases = append(cases, optest.Case{
					Name: fmt.Sprintf("block of %d pre=%t keep=%g", cols, pre, keep), Inputs: in, WRT: []int{0, 1, 2, 3, 4, 5},
					Build: func(ns gorgonia.Nodes) *gorgonia.Node {
						site := uint64(0)
						seam := func(h, x *gorgonia.Node) (sum, norm *gorgonia.Node) {
							a := AddNormArgs{H: h, X: x, Gamma: ns[4], Beta: ns[5], Eps: 1e-3}
							if keep > 0 {
								site++
								a.Bits, a.Keep = DropoutBits(ns[6], site, rows, cols, keep), keep
							}
							return AddNorm(a)
						}
						x := ns[0]
						norm := LayerNorm(x, ns[4], ns[5], 1e-3)
						for _, w := range []int{1, 2, 1} {
							if pre {
								x, norm = seam(Linear(norm, ns[w], ns[3]), x)
							} else {
								_, norm = seam(Linear(norm, ns[w], ns[3]), norm)
							}
						}
						if !pre {
							return arith.Add(Linear(norm, ns[2], nil), norm)
						}
						return arith.Add(Linear(norm, ns[2], nil), x)
					},
				})
			}
		}
	}
	for _, d := range []int{16, 20} {
		f := func(name string, shape ...int) optest.Input { return optest.F32s(r, name, shape...) }
		cases = append(cases, optest.Case{
			Name:   fmt.Sprintf("way into a tower of %d", d),
			Inputs: []optest.Input{f("images", 3, 3, 8, 12), f("w", d, 48), f("b", d), f("token", d), f("table", 7, d), f("gamma", d), f("beta", d), f("v", d, d)},
			WRT:    []int{1, 2, 3, 4, 5, 6, 7},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := PrependToken(Linear(Patchify(ns[0], 4), ns[1], ns[2]), ns[3], 6)
				return Linear(LayerNorm(AddPositions(x, ns[4], 7), ns[5], ns[6], 1e-3), ns[7], nil)
			},
		})
	}
	optest.CheckCUDA(t, cases)
}
