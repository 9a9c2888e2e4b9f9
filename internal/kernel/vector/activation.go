package vector

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// Activation is a function that follows a matrix product, element by element.
type Activation uint8

// The activations. The zero value is none.
const (
	ByGELU      Activation = iota + 1 // x Phi(x), the exact form (Hendrycks and Gimpel 2016)
	ByGELUTanh                        // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), their approximation
	ByQuickGELU                       // x sigmoid(1.702 x), their other one
	BySiLU                            // x sigmoid(x)
)

// activationNames are the names of activations in configurations.
var activationNames = [...]string{ByGELU: "gelu", ByGELUTanh: "gelu_tanh", ByQuickGELU: "quick_gelu", BySiLU: "silu"}

// ActivationOf returns the activation of a name: gelu, gelu_tanh, quick_gelu or silu.
func ActivationOf(name string) (Activation, bool) {
	for a, n := range activationNames {
		if n == name && a > 0 {
			return Activation(a), true
		}
	}
	return 0, false
}

// String returns its name.
func (a Activation) String() string { return activationNames[a] }

// sigmoids are the activations x sigmoid(x (a + b x^2)) by their a and b. For gelu_tanh
// (1 + tanh u)/2 is the sigmoid of 2u.
var sigmoids = [...]struct{ a, b float32 }{
	ByGELUTanh:  {1.5957691216057308, 1.5957691216057308 * 0.044715},
	ByQuickGELU: {a: 1.702},
	BySiLU:      {a: 1},
}

// Apply sets dst to the activation of x, with an absolute error below 3e-7 * max(|x|, 1).
// Of -Inf it is NaN, as in PyTorch, but for GELU.
func (a Activation) Apply(dst, x []float32) {
	if a == ByGELU {
		GELU(dst, x)
		return
	}
	of := sigmoids[a]
	if !cpu.HasVectors {
		plainSigmoidUnit(dst, x, of.a, of.b)
		return
	}
	n := len(dst)
	sigmoidUnitVec(at(dst, n), at(x, n), n, of.a, of.b)
}

// Grad sets dst to dy times the derivative of the activation at x, with an absolute error of
// the factor below 2e-6.
func (a Activation) Grad(dst, x, dy []float32) {
	if a == ByGELU {
		GELUGrad(dst, x, dy)
		return
	}
	of := sigmoids[a]
	if !cpu.HasVectors {
		plainSigmoidUnitGrad(dst, x, dy, of.a, of.b)
		return
	}
	n := len(dst)
	sigmoidUnitGradVec(at(dst, n), at(x, n), at(dy, n), n, of.a, of.b, 3*of.b)
}

// AddBias adds bias to each row of pre, which is rows x len(bias), and sets out to the
// activation of the sums: what is left to do after a product that could not do it itself.
// out has at least the length of pre and must not overlap it.
func (a Activation) AddBias(pre, out, bias []float32) {
	if a == ByGELU {
		BiasGELU(pre, out, bias)
		return
	}
	n := len(bias)
	checkRows(pre, n)
	_ = at(out, len(pre))
	for i := 0; i < len(pre); i += n {
		row := pre[i : i+n]
		Add(row, row, bias)
		a.Apply(out[i:i+n], row)
	}
}

// ToBF16 is Apply with the result rounded. The length is that of dst.
func (a Activation) ToBF16(dst []uint16, x []float32) {
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		a.Apply(piece[:n], x[:n])
		ToBF16(dst[:n], piece[:n])
		dst, x = dst[n:], x[n:]
	}
}

// GradOfHalf is Grad for x in bfloat16. dst may be the same slice as dy.
func (a Activation) GradOfHalf(dst []float32, x []uint16, dy []float32) {
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		FromBF16(piece[:n], x[:n])
		a.Grad(dst[:n], piece[:n], dy[:n])
		dst, x, dy = dst[n:], x[n:], dy[n:]
	}
}

// GradHalves is GradToBF16 for x in bfloat16.
func (a Activation) GradHalves(dst, x []uint16, dy []float32) {
	if n := len(dst); a == ByGELU && cpu.HasAVX512 && n > 0 {
		x, dy = x[:n], dy[:n]
		geluGradHalvesVec(&dst[0], &x[0], &dy[0], n)
		return
	}
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		a.GradOfHalf(piece[:n], x[:n], dy[:n])
		ToBF16(dst[:n], piece[:n])
		dst, x, dy = dst[n:], x[n:], dy[n:]
	}
}

// AddToBF16 sets sum to x + y, rounded, and dst to the activation of sum, rounded. The length
// is that of sum.
func (a Activation) AddToBF16(sum, dst []uint16, x, y []float32) {
	if n := len(sum); a == ByGELU && cpu.HasAVX512 && n > 0 {
		dst, x, y = dst[:n], x[:n], y[:n]
		addGELUToHalvesVec(&sum[0], &dst[0], &x[0], &y[0], n)
		return
	}
	AddToBF16(sum, x, y)
	a.HalfToBF16(dst[:len(sum)], sum)
}

// HalfToBF16 is ToBF16 for x in bfloat16.
func (a Activation) HalfToBF16(dst, x []uint16) {
	if n := len(dst); a == ByGELU && cpu.HasAVX512 && n > 0 {
		x = x[:n]
		geluHalvesVec(&dst[0], &x[0], n)
		return
	}
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		FromBF16(piece[:n], x[:n])
		a.Apply(piece[:n], piece[:n])
		ToBF16(dst[:n], piece[:n])
		dst, x = dst[n:], x[n:]
	}
}

// GradToBF16 is Grad with the result rounded. The length is that of dst.
func (a Activation) GradToBF16(dst []uint16, x, dy []float32) {
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		a.Grad(piece[:n], x[:n], dy[:n])
		ToBF16(dst[:n], piece[:n])
		dst, x, dy = dst[n:], x[n:], dy[n:]
	}
}

// sigmoidEnd is where the sigmoids are 0 or 1 in float32, with room to spare.
const sigmoidEnd = 104

func plainSigmoidUnit(dst, x []float32, a, b float32) {
	for i, v := range x[:len(dst)] {
		w := math.Max(-sigmoidEnd, math.Min(float64(v), sigmoidEnd))
		e := exp32(float32(-w * (float64(a) + float64(b)*w*w)))
		dst[i] = float32(float64(v) / (1 + float64(e)))
	}
}

func plainSigmoidUnitGrad(dst, x, dy []float32, a, b float32) {
	for i, v := range x[:len(dst)] {
		w := math.Max(-sigmoidEnd, math.Min(float64(v), sigmoidEnd))
		s := 1 / (1 + math.Exp(-w*(float64(a)+float64(b)*w*w)))
		dst[i] = dy[i] * float32(s+w*(float64(a)+3*float64(b)*w*w)*s*(1-s))
	}
}
