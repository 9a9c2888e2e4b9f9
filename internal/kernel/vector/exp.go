package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// Exp sets dst = exp(x), within 1 ulp. It is 0 for -Inf, +Inf for +Inf and NaN for NaN.
func Exp(dst, x []float32) {
	if !cpu.HasVectors {
		plainExp(dst, x)
		return
	}
	n := len(dst)
	expVec(at(dst, n), at(x, n), n)
}

// ExpSum sets dst = exp(x - shift) and returns the sum of dst, summed in float32
// in at least 16 parts.
func ExpSum(dst, x []float32, shift float32) float32 {
	if !cpu.HasVectors {
		return plainExpSum(dst, x, shift)
	}
	n := len(dst)
	return expSumVec(at(dst, n), at(x, n), n, shift)
}

// SumExp returns sum exp(x - shift), as ExpSum does.
func SumExp(x []float32, shift float32) float32 {
	if !cpu.HasVectors {
		return plainSumExp(x, shift)
	}
	return sumExpVec(unsafe.SliceData(x), len(x), shift)
}

// SumExpMax returns SumExp and the largest x - shift, NaNs left out: where shift is a
// guess of the largest x, it tells how good the guess was.
func SumExpMax(x []float32, shift float32) (sum, top float32) {
	if !cpu.HasVectors {
		return plainSumExp(x, shift), plainTop(x, shift)
	}
	return sumExpMaxVec(unsafe.SliceData(x), len(x), shift)
}

// SumExpDotMax is SumExpMax that also returns the sum of exp(x - shift) * y.
func SumExpDotMax(x, y []float32, shift float32) (sum, dot, top float32) {
	if !cpu.HasVectors {
		return plainSumExp(x, shift), plainSumExpDot(x, y, shift), plainTop(x, shift)
	}
	n := len(x)
	return sumExpDotMaxVec(at(x, n), at(y, n), n, shift)
}

// LogSumExp returns log sum exp(x), computed stably. It is -Inf if x is empty or
// all of it is -Inf.
func LogSumExp(x []float32) float32 {
	m := Max(x)
	if math.IsInf(float64(m), 0) {
		return m
	}
	return m + float32(math.Log(float64(SumExp(x, m))))
}

// Softmax sets dst = softmax(x) and returns log sum exp(x). A row of -Inf alone
// gives NaN.
func Softmax(dst, x []float32) float32 {
	m := Max(x[:len(dst)])
	s := ExpSum(dst, x, m)
	Scale(dst, 1/s, dst)
	return m + float32(math.Log(float64(s)))
}

// SoftmaxGradRow sets dst = p * (dp - sum p*dp), the gradient at the logits of a
// row of softmax whose value is p and whose gradient is dp.
func SoftmaxGradRow(dst, p, dp []float32) {
	n := len(dst)
	d := Dot(p[:n], dp)
	if !cpu.HasVectors {
		plainMulSub(dst, p, dp, d)
		return
	}
	mulSubVec(at(dst, n), at(p, n), at(dp, n), n, d)
}

// SoftmaxDiff sets dst = scale * exp(s - lseS): with lseS = log sum exp(s) a scaled
// softmax of s.
func SoftmaxDiff(dst, s []float32, lseS, scale float32) {
	if !cpu.HasVectors {
		plainSoftmaxDiff(dst, s, lseS, scale)
		return
	}
	n := len(dst)
	expScaleVec(at(dst, n), at(s, n), n, lseS, scale)
}

// SoftmaxDiff2 sets dst = a*exp(s - lseS) - b*exp(t - lseT): the difference of two
// scaled softmaxes, neither of which is stored.
func SoftmaxDiff2(dst, s, t []float32, lseS, a, lseT, b float32) {
	if !cpu.HasVectors {
		plainSoftmaxDiff2(dst, s, t, lseS, a, lseT, b)
		return
	}
	n := len(dst)
	expDiffVec(at(dst, n), at(s, n), at(t, n), n, lseS, a, lseT, b)
}

// GELU sets dst = x * Phi(x), the exact (erf) form (Hendrycks and Gimpel 2016).
// The absolute error is below 1.2e-7 * max(|x|, 1) (1 ulp of x), the relative error
// for -10 < x < 0 below 5e-6; far from 0 the value is x or 0 exactly, and -Inf gives
// the limit 0.
func GELU(dst, x []float32) {
	if !cpu.HasVectors {
		plainGELU(dst, x)
		return
	}
	n := len(dst)
	geluVec(at(dst, n), at(x, n), n)
}

// BiasGELU adds bias to each row of pre, which is rows x len(bias), and sets out to
// GELU of the sums, in one pass: what is left to do after a product that could not
// do it itself. out has at least the length of pre and must not overlap it.
func BiasGELU(pre, out, bias []float32) {
	n := len(bias)
	checkRows(pre, n)
	_ = at(out, len(pre))
	if !cpu.HasVectors {
		plainBiasGELU(pre, out, bias)
		return
	}
	for i := 0; i < len(pre); i += n {
		biasGELUVec(at(pre[i:], n), at(out[i:], n), unsafe.SliceData(bias), n)
	}
}

// GELUGrad sets dst = dy * (Phi(x) + x*phi(x)), the derivative of GELU, with an
// absolute error of the factor below 2e-7.
func GELUGrad(dst, x, dy []float32) {
	if !cpu.HasVectors {
		plainGELUGrad(dst, x, dy)
		return
	}
	n := len(dst)
	geluGradVec(at(dst, n), at(x, n), at(dy, n), n)
}
