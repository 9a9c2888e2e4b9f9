package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// definitions are the activations and their derivatives in float64, as their papers write them.
var definitions = map[Activation][2]func(x float64) float64{
	ByGELU: {
		func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
		func(x float64) float64 {
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		},
	},
	ByGELUTanh: {
		func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		},
		func(x float64) float64 {
			t := math.Tanh(math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x))
			return (1+t)/2 + x/2*(1-t*t)*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
		},
	},
	ByQuickGELU: {
		func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
		func(x float64) float64 {
			s := 1 / (1 + math.Exp(-1.702*x))
			return s + 1.702*x*s*(1-s)
		},
	},
	BySiLU: {
		func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		func(x float64) float64 {
			s := 1 / (1 + math.Exp(-x))
			return s + x*s*(1-s)
		},
	},
}

// TestActivations compares values and derivatives with the definitions over all sizes of
// numbers.
func TestActivations(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		y, d, one := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
		Fill(one, 1)
		for a, def := range definitions {
			var worst, worstGrad float64
			sweep(sweepStep, func(x []float32) {
				a.Apply(y[:len(x)], x)
				a.Grad(d[:len(x)], x, one[:len(x)])
				for i, v := range x {
					v := float64(v)
					if math.IsNaN(v) || math.Abs(v) > 1e30 {
						continue
					}
					worst = max(worst, math.Abs(float64(y[i])-def[0](v))/max(math.Abs(v), 1))
					if math.Abs(v) < 1e5 { // where the derivative's own formula is finite
						worstGrad = max(worstGrad, math.Abs(float64(d[i])-def[1](v)))
					}
				}
			})
			t.Logf("%v: largest error %.2g of max(|x|, 1), of the gradient %.2g", a, worst, worstGrad)
			if !(worst <= 3e-7) || !(worstGrad <= 2e-6) {
				t.Errorf("%v: largest error %.2g of max(|x|, 1), of the gradient %.2g", a, worst, worstGrad)
			}
			special := []float32{kerneltest.Inf, -kerneltest.Inf, kerneltest.NaN}
			a.Apply(y[:3], special)
			a.Grad(d[:3], special, one)
			if y[0] != kerneltest.Inf || y[2] == y[2] || d[0] != 1 || !(math.Abs(float64(d[1])) <= 1e-30) || d[2] == d[2] {
				t.Errorf("%v: of Inf, -Inf and NaN %v with gradients %v", a, y[:3], d[:3])
			}
		}
	})
}

// AddBias must do what an addition and Apply do, and ToBF16 and GradToBF16 what Apply and
// Grad do, rounded.
func TestActivationForms(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for a := range definitions {
			rows, n := 3, 70+r.IntN(300)
			pre, _ := vectorSlice(r, rows*n, false)
			dy, _ := vectorSlice(r, rows*n, false)
			bias, _ := vectorSlice(r, n, false)
			sum, want, got := append([]float32{}, pre...), make([]float32, rows*n), make([]float32, rows*n)
			AddRows(sum, bias)
			a.Apply(want, sum)
			a.AddBias(pre, got, bias)
			if i, ok := same(got, want); !ok {
				t.Fatalf("%v: value %d with bias is %v, want %v", a, i, got[i], want[i])
			}
			half, wantHalf := make([]uint16, rows*n), make([]uint16, rows*n)
			for name, f := range map[string][2]func(){
				"ToBF16":     {func() { a.ToBF16(half, sum) }, func() { a.Apply(want, sum) }},
				"GradToBF16": {func() { a.GradToBF16(half, sum, dy) }, func() { a.Grad(want, sum, dy) }},
			} {
				f[0]()
				f[1]()
				ToBF16(wantHalf, want)
				for i := range half {
					if half[i] != wantHalf[i] {
						t.Fatalf("%v.%s: value %d is %x, want %x", a, name, i, half[i], wantHalf[i])
					}
				}
			}
		}
	})
}

func TestActivationNames(t *testing.T) {
	for a := range definitions {
		if got, ok := ActivationOf(a.String()); !ok || got != a {
			t.Errorf("%q is activation %d, want %d", a.String(), got, a)
		}
	}
	for _, name := range []string{"", "relu"} {
		if a, ok := ActivationOf(name); ok {
			t.Errorf("%q is activation %v", name, a)
		}
	}
}
