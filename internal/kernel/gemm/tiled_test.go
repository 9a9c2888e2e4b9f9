//go:build amd64 || arm64

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

// Every built-in product computes the product, across blocks in each direction and at odd sizes; whether it packs
// operands or reads them where they lie, it computes the same bits.
func TestTiled(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, made := range [][]*gemm.Tiled{{gemm.New(), gemm.NewPacking()}, {gemm.NewBF16()}} {
			if made[0] == nil {
				continue
			}
			r := rand.New(rand.NewPCG(61, 62))
			for _, size := range [][3]int{{1, 1, 1}, {3, 40, 5}, {57, 33, 300}, {115, 97, 270}, {29, 800, 257}, {128, 65, 777}, {113, 65, 128},
				{65, 64, 65}, {64, 40, 70}, {30, 24, 64}, {70, 24, 300}} {
				for range 4 {
					checkTiled(t, r, made, size)
				}
			}
		}
	})
}

func checkTiled(t *testing.T, r *rand.Rand, made []*gemm.Tiled, size [3]int) {
	g := gemmtest.RandomCase(r, size[0], size[1], size[2])
	g.P.BF16 = made[0].BF16
	if !g.P.BF16 && (g.HalfA || g.HalfB) {
		g.HalfA, g.HalfB = false, false
		g = gemmtest.NewCase(r, g)
	}
	want, bound := gemmtest.Exact(&g.P)
	start := slices.Clone(g.P.C)
	var first []float32
	for _, by := range made {
		p := g.P
		p.C, p.Activated = slices.Clone(start), slices.Clone(g.P.Activated)
		by.Multiply(&p)
		checkHalf(t, by, g.P)
		for row := range p.M {
			for at := row * p.LDC; at < row*p.LDC+p.N; at++ {
				if d := math.Abs(float64(p.C[at]) - want[at]); !(d <= float64(p.K+4)*bound[at]*0x1p-24) {
					t.Fatalf("%v: element %d is %v, want %v", g, at, p.C[at], want[at])
				}
			}
		}
		if first == nil {
			first = p.C
		}
		if !slices.Equal(first, p.C) {
			t.Errorf("%v: packed operands make other bits", g)
		}
	}
}

// checkHalf fails if a result of bfloat16, and its activation, are not those of the float32 product, rounded.
func checkHalf(t *testing.T, by *gemm.Tiled, p gemm.Product) {
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
			t.Fatalf("%dx%dx%d: row %d is not that of the product, rounded", p.M, p.N, p.K, i)
		}
	}
}
