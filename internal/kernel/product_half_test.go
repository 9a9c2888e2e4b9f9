package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// TestProductHalf compares what follows a product, where results are bfloat16, with passes over
// the float32 product, bit by bit: with and without a bias, for all that can be asked for, in one
// block of terms and several, on one thread and two.
func TestProductHalf(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, threads := range []int{1, 2} {
			for _, precision := range []string{"fp32", "bf16"} {
				e, err := New(Options{Backend: "builtin", Threads: threads, Precision: precision})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				for _, size := range [][3]int{{1, 1, 1}, {37, 50, 20}, {130, 401, 64}, {150, 90, 1700}, {70, 128, 800}} {
					for _, bias := range []bool{false, true} {
						for _, of := range []vector.Activation{vector.ByGELU, vector.BySiLU} {
							testProductHalf(t, e, size, bias, of)
						}
					}
				}
			}
		}
	})
}

func testProductHalf(t *testing.T, e *Engine, size [3]int, bias bool, of vector.Activation) {
	m, n, k := size[0], size[1], size[2]
	r := rand.New(rand.NewPCG(51, uint64(n)))
	p := gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransB: true, M: m, N: n, K: k, Alpha: 1, BF16: e.BF16()}, Bias: bias}).P
	p.Activation = of
	plain := p
	plain.C, plain.Activation = make([]float32, len(p.C)), 0
	e.Multiply(&plain)
	half := make([]uint16, len(p.C))
	vector.ToBF16(half, plain.C)
	wide := make([]float32, len(p.C))
	vector.FromBF16(wide, half)
	activated, slope := make([]float32, len(wide)), make([]float32, len(wide))
	of.Apply(activated, wide)
	for i := range slope {
		slope[i] = float32(r.NormFloat64())
	}
	before := make([]uint16, len(slope))
	vector.ToBF16(before, slope)
	vector.FromBF16(slope, before)
	product := p
	product.Bias, product.C = nil, make([]float32, len(p.C))
	product.Activation = 0
	e.Multiply(&product)
	grad := make([]float32, len(slope))
	of.Grad(grad, slope, product.C)
	// What is made of bfloat16 for bfloat16 is rounded where it is computed.
	activatedHalf, gradHalf := make([]uint16, len(half)), make([]uint16, len(half))
	of.HalfToBF16(activatedHalf, half)
	of.GradHalves(gradHalf, before, product.C)
	rounded := func(x []float32) []uint16 {
		h := make([]uint16, len(x))
		vector.ToBF16(h, x)
		return h
	}
	gradOf := func(x gemm.Matrix, half bool) gemm.Product {
		q := p
		q.Bias, q.Before = nil, x
		q.Before.LD = q.LDC
		if half {
			q.Half = make([]uint16, len(p.C))
		}
		return q
	}
	asHalf := p
	asHalf.Half = make([]uint16, len(p.C))
	floatActivated, halfActivated := asHalf, asHalf
	floatActivated.Half, halfActivated.Half = slices.Clone(asHalf.Half), slices.Clone(asHalf.Half)
	floatActivated.Activated = make([]float32, len(p.C))
	halfActivated.ActivatedHalf = make([]uint16, len(p.C))
	inPlace := asHalf // of what it is applied to
	inPlace.Half = make([]uint16, len(p.C))
	inPlace.ActivatedHalf = inPlace.Half
	for what, c := range map[string]struct {
		p             gemm.Product
		half          []uint16
		c             []float32
		activated     []float32
		activatedHalf []uint16
	}{
		"half":                {p: asHalf, half: half},
		"half and activated":  {p: floatActivated, half: half, activated: activated},
		"halves":              {p: halfActivated, half: half, activatedHalf: activatedHalf},
		"halves in place":     {p: inPlace, activatedHalf: activatedHalf},
		"gradient":            {p: gradOf(gemm.Matrix{F32: slope}, false), c: grad},
		"gradient of half":    {p: gradOf(gemm.Matrix{BF16: before}, false), c: grad},
		"half gradient":       {p: gradOf(gemm.Matrix{F32: slope}, true), half: rounded(grad)},
		"half gradient, half": {p: gradOf(gemm.Matrix{BF16: before}, true), half: gradHalf},
	} {
		c.p.C = make([]float32, len(p.C))
		e.Multiply(&c.p)
		name := fmt.Sprintf("%s %v bias %t, %v: ", what, size, bias, of)
		for i := range m {
			for j := range n {
				at := i*p.LDC + j
				switch {
				case c.half != nil && c.p.Half[at] != c.half[at]:
					t.Fatalf("%sresult %d, %d is %#x, want %#x", name, i, j, c.p.Half[at], c.half[at])
				case c.c != nil && c.p.C[at] != c.c[at]:
					t.Fatalf("%sresult %d, %d is %v, want %v", name, i, j, c.p.C[at], c.c[at])
				case c.activated != nil && c.p.Activated[at] != c.activated[at]:
					t.Fatalf("%sactivation %d, %d is %v, want %v", name, i, j, c.p.Activated[at], c.activated[at])
				case c.activatedHalf != nil && c.p.ActivatedHalf[at] != c.activatedHalf[at]:
					t.Fatalf("%sactivation %d, %d is %#x, want %#x", name, i, j, c.p.ActivatedHalf[at], c.activatedHalf[at])
				}
			}
		}
	}
}
