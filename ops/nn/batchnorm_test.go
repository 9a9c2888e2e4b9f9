package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// batchNormOf builds a batch norm whose result is the output of the given number: y, mean or variance. Operands are x,
// gamma, beta, given mean and variance, and lengths, as far as they are asked for.
func batchNormOf(given bool, l, output int, eps float32) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		a := BatchNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], Eps: eps}
		ns = ns[3:]
		if given {
			a.Mean, a.Variance, ns = ns[0], ns[1], ns[2:]
		}
		if l > 0 {
			a.Lengths, a.Len = ns[0], l
		}
		y, mean, variance := BatchNorm(a)
		return gorgonia.Nodes{y, mean, variance}[output]
	}
}

// TestBatchNorm compares the result, the statistics and gradients with the definition and finite differences, with
// rows that do not count, which hold no numbers.
func TestBatchNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	const eps = 1e-2
	for _, s := range append(optest.RandomShapes(r, 8, 7, 5, 20), []int{40, 9, 3}) {
		n, l, d := s[0]+1, s[1]+1, s[2]
		x, gamma, beta := optest.F32s(r, "x", n*l, d), optest.F32s(r, "gamma", d), optest.F32s(r, "beta", d)
		given := []optest.Input{optest.F32s(r, "mean", d), optest.F32s(r, "variance", d)}
		for j := range d {
			x.Floats()[j] += 3 // a mean that is not 0
			given[1].Floats()[j] = given[1].Floats()[j]*given[1].Floats()[j] + .5
		}
		lengths := optest.RandomInts(r, n, l+1)
		lengths[0], lengths[1] = int32(l), 0
		for _, padded := range []bool{false, true} {
			x, counts, length := optest.In("x", []int{n * l, d}, append([]float32(nil), x.Floats()...)), make([]bool, n*l), 0
			for i := range counts {
				counts[i] = !padded || i%l < int(lengths[i/l])
				for j := range d {
					if !counts[i] {
						x.Floats()[i*d+j] = float32(math.NaN())
					}
				}
			}
			var sequences []optest.Input
			if padded {
				length, sequences = l, []optest.Input{optest.I32s("lengths", lengths, n)}
			}
			wantMean, wantVariance := make([]float32, d), make([]float32, d)
			batch, fixed := make([]float32, n*l*d), make([]float32, n*l*d)
			for j := range d {
				var column []float64
				for i := range counts {
					if counts[i] {
						column = append(column, float64(x.Floats()[i*d+j]))
					}
				}
				var mean, squares float64
				for _, v := range column {
					mean += v / float64(len(column))
				}
				for _, v := range column {
					squares += (v - mean) * (v - mean)
				}
				wantMean[j], wantVariance[j] = float32(mean), float32(squares/float64(len(column)-1))
				for i := range counts {
					if !counts[i] {
						continue
					}
					v, g, b := float64(x.Floats()[i*d+j]), float64(gamma.Floats()[j]), float64(beta.Floats()[j])
					batch[i*d+j] = float32(g*(v-mean)/math.Sqrt(squares/float64(len(column))+eps) + b)
					fixed[i*d+j] = float32(g*(v-float64(given[0].Floats()[j]))/math.Sqrt(float64(given[1].Floats()[j])+eps) + b)
				}
			}
			in := append([]optest.Input{x, gamma, beta}, sequences...)
			for output, want := range [][]float32{batch, wantMean, wantVariance} {
				optest.Near(t, "batch norm", optest.Eval(t, batchNormOf(false, length, output, eps), in...).F32, want, 2e-5)
			}
			fixedIn := append([]optest.Input{x, gamma, beta, given[0], given[1]}, sequences...)
			optest.Near(t, "batch norm by given statistics", optest.Eval(t, batchNormOf(true, length, 0, eps), fixedIn...).F32, fixed, 2e-5)
			if padded { // differences need numbers
				for i := range x.Floats() {
					if !counts[i/d] {
						x.Floats()[i] = 7
					}
				}
			}
			optest.CheckGrad(t, batchNormOf(false, length, 0, eps), []int{0, 1, 2}, 1e-2, 2e-2, in...)
			optest.CheckGrad(t, batchNormOf(true, length, 0, eps), []int{0, 1, 2}, 1e-2, 2e-2, fixedIn...)
		}
	}
}

// TestBatchNormGradientBehindLength: rows that do not count have no gradient, whatever comes from above.
func TestBatchNormGradientBehindLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 32))
	x := optest.F32s(r, "x", 6, 2)
	in := []optest.Input{x, optest.F32s(r, "gamma", 2), optest.F32s(r, "beta", 2), optest.I32s("lengths", []int32{2, 1}, 2)}
	grads, _ := optest.Gradients(t, batchNormOf(false, 3, 0, 0), []int{0}, in...)
	for i, g := range grads[0] {
		if counts := i/2%3 < []int{2, 1}[i/6]; (g != 0) != counts {
			t.Errorf("gradient of element %d is %g", i, g)
		}
	}
}

// TestBatchNormErrors: operands that do not fit and batches without a variance are refused.
func TestBatchNormErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 33))
	x, v := optest.F32s(r, "x", 6, 2), optest.F32s(r, "v", 2)
	_, ns := optest.Nodes([]optest.Input{x, v, optest.F32s(r, "w", 3), optest.I32s("lengths", make([]int32, 2), 2)})
	for want, build := range map[string]func(){
		"want x (R, D)":                func() { batchNormOf(false, 0, 0, 0)(gorgonia.Nodes{ns[1], ns[1], ns[1]}) },
		"gamma must have shape (2)":    func() { batchNormOf(false, 0, 0, 0)(gorgonia.Nodes{ns[0], ns[2], ns[1]}) },
		"beta must have shape (2)":     func() { batchNormOf(false, 0, 0, 0)(gorgonia.Nodes{ns[0], ns[1], ns[2]}) },
		"eps must not be negative":     func() { batchNormOf(false, 0, 0, -1)(gorgonia.Nodes{ns[0], ns[1], ns[1]}) },
		"mean must have shape (2)":     func() { batchNormOf(true, 0, 0, 0)(gorgonia.Nodes{ns[0], ns[1], ns[1], ns[2], ns[1]}) },
		"variance must have shape (2)": func() { batchNormOf(true, 0, 0, 0)(gorgonia.Nodes{ns[0], ns[1], ns[1], ns[1], ns[2]}) },
		"rows must be a multiple of 4": func() { batchNormOf(false, 4, 0, 0)(gorgonia.Nodes{ns[0], ns[1], ns[1], ns[3]}) },
		"lengths must have shape (3)":  func() { batchNormOf(false, 2, 0, 0)(gorgonia.Nodes{ns[0], ns[1], ns[1], ns[3]}) },
	} {
		optest.BuildError(t, want, want, build)
	}
	for want, lengths := range map[string][]int32{"lengths[1] is 4": {1, 4}, "1 rows of the batch count": {1, 0}, "0 rows of the batch count": {0, 0}} {
		optest.RunError(t, want, batchNormOf(false, 3, 0, 0), x, v, v, optest.I32s("lengths", lengths, 2))
	}
}
