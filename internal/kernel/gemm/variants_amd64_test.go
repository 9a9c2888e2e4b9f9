package gemm_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Every variant computes the product, across blocks in each direction and at odd sizes; those that cut sums in the same way
// agree in every bit.
func TestVariants(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, variants := range [][]gemm.Variant{gemm.Variants(), gemm.VariantsBF16()} {
			r := rand.New(rand.NewPCG(61, 62))
			made := make([]*gemm.Tiled, len(variants))
			for i, v := range variants {
				made[i] = v.New()
			}
			for _, size := range [][3]int{{1, 1, 1}, {3, 40, 5}, {57, 33, 300}, {115, 97, 270}, {29, 800, 257}, {128, 65, 777}, {113, 65, 128}} {
				g := gemmtest.RandomCase(r, size[0], size[1], size[2])
				if len(made) > 0 {
					g.P.BF16 = made[0].BF16
				}
				if !g.P.BF16 && (g.HalfA || g.HalfB) {
					g.HalfA, g.HalfB = false, false
					g = gemmtest.NewCase(r, g)
				}
				want, bound := gemmtest.Exact(&g.P)
				start := slices.Clone(g.P.C)
				var results [][]float32
				for i, v := range variants {
					p := g.P
					p.C, p.Activated = slices.Clone(start), slices.Clone(g.P.Activated)
					made[i].Multiply(&p)
					results = append(results, p.C)
					checkHalf(t, v.Name, made[i], g.P)
					for row := range p.M {
						for at := row * p.LDC; at < row*p.LDC+p.N; at++ {
							if d := math.Abs(float64(p.C[at]) - want[at]); !(d <= float64(p.K+4)*bound[at]*0x1p-24) {
								t.Fatalf("%s: %v: element %d is %v, want %v", v.Name, g, at, p.C[at], want[at])
							}
						}
					}
				}
				if len(results) > 0 && !slices.Equal(results[0], results[2]) {
					t.Errorf("%v: %s and %s differ", g, variants[0].Name, variants[2].Name)
				}
			}
		}
	})
}

// checkHalf fails if a result of bfloat16, and its activation, are not those of the float32 product, rounded.
func checkHalf(t *testing.T, name string, by *gemm.Tiled, p gemm.Product) {
	t.Helper()
	p.C, p.Beta, p.Activated, p.Activation = make([]float32, len(p.C)), 0, nil, vector.ByGELU
	half := p
	half.C, half.Half, half.ActivatedHalf = make([]float32, len(p.C)), make([]uint16, len(p.C)), make([]uint16, len(p.C))
	before := p.Before.BF16
	if before != nil {
		p.Before = gemm.Matrix{} // the derivative is rounded where it is computed
	}
	by.Multiply(&p)
	by.Multiply(&half)
	want, activated := make([]uint16, p.N), make([]uint16, p.N)
	for i := range p.M {
		at, to := i*p.LDC, i*p.LDC+p.N
		if before == nil {
			vector.ToBF16(want, p.C[at:to])
		} else {
			vector.ByGELU.GradHalves(want, before[at:to], p.C[at:to])
		}
		vector.ByGELU.HalfToBF16(activated, want)
		if !slices.Equal(half.Half[at:to], want) || !slices.Equal(half.ActivatedHalf[at:to], activated) {
			t.Fatalf("%s: %dx%dx%d: row %d is not that of the product, rounded", name, p.M, p.N, p.K, i)
		}
	}
}
