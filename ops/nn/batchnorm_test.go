package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
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

// batchNormThen builds a batch norm of x, gamma and beta with what follows it in a residual network.
func batchNormThen(relu bool, add *gorgonia.Node) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		y, _, _ := BatchNorm(BatchNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], Eps: 1e-2, Add: add, ReLU: relu})
		return y
	}
}

// TestBatchNormThen compares a residual and a ReLU that are part of a batch norm with ops of their own, in value and
// gradient, over rows in several parts.
func TestBatchNormThen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 34))
	for _, rows := range []int{2, 37, 600} {
		in := []optest.Input{optest.F32s(r, "x", rows, 5), optest.F32s(r, "gamma", 5), optest.F32s(r, "beta", 5), optest.F32s(r, "add", rows, 5)}
		for _, added := range []bool{false, true} {
			for _, relu := range []bool{false, true} {
				wrt := []int{0, 1, 2}
				if added {
					wrt = append(wrt, 3)
				}
				fused := func(ns gorgonia.Nodes) *gorgonia.Node {
					if added {
						return batchNormThen(relu, ns[3])(ns)
					}
					return batchNormThen(relu, nil)(ns)
				}
				parts := func(ns gorgonia.Nodes) *gorgonia.Node {
					y := batchNormThen(false, nil)(ns)
					if added {
						y = arith.Add(y, ns[3])
					}
					if relu {
						y = ReLU(y)
					}
					return y
				}
				optest.Near(t, "value", optest.Eval(t, fused, in...).F32, optest.Eval(t, parts, in...).F32, 1e-6)
				got, _ := optest.Gradients(t, fused, wrt, in...)
				want, _ := optest.Gradients(t, parts, wrt, in...)
				for i := range want {
					optest.Near(t, in[wrt[i]].Name, got[i], want[i], 2e-6)
				}
			}
		}
	}
}

// TestBatchNormFarRow: statistics hold where the mean is far from 0, and where the first row is far from the others.
func TestBatchNormFarRow(t *testing.T) {
	const rows = 1000
	x := make([]float32, rows*2)
	for i := range rows {
		x[2*i], x[2*i+1] = 65536+float32(i%4), float32(i%4)
	}
	x[1] = 1e6
	in := []optest.Input{optest.In("x", []int{rows, 2}, x), optest.In("gamma", []int{2}, []float32{1, 1}), optest.In("beta", []int{2}, []float32{0, 0})}
	var want [2][]float32
	for j := range 2 {
		var mean, squares float64
		for i := range rows {
			mean += float64(x[2*i+j]) / rows
		}
		for i := range rows {
			squares += (float64(x[2*i+j]) - mean) * (float64(x[2*i+j]) - mean)
		}
		want[0], want[1] = append(want[0], float32(mean)), append(want[1], float32(squares/(rows-1)))
	}
	for output := range 2 {
		got := optest.Eval(t, batchNormOf(false, 0, output+1, 1e-5), in...).F32
		for j := range got {
			if !(math.Abs(float64(got[j]/want[output][j])-1) <= 2e-7) {
				t.Errorf("statistic %d of column %d is %g, want %g", output, j, got[j], want[output][j])
			}
		}
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
