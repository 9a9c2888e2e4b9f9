package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

//go:generate go run ../gen/vector -out vector_amd64.s -stubs vector_amd64.go -other vector_other.go -pkg vector
//go:generate go run ../gen/neon -from vector_amd64.s -out vector_arm64.s -stubs vector_arm64.go -pkg vector
//go:generate go run ../gen/gemm -halves -out halves_amd64.s -stubs halves_amd64.go -pkg vector

// Dot returns sum x*y, summed in float64 and rounded once.
func Dot(x, y []float32) float32 {
	if !cpu.HasVectors {
		return plainDot(x, y)
	}
	n := len(x)
	return float32(dotVec(at(x, n), at(y, n), n))
}

// Sum returns sum x, summed in float64 and rounded once.
func Sum(x []float32) float32 {
	if !cpu.HasVectors {
		return plainSum(x)
	}
	return float32(sumVec(unsafe.SliceData(x), len(x)))
}

// SumSq returns sum x*x in float64.
func SumSq(x []float32) float64 {
	if !cpu.HasVectors {
		return plainSumSq(x)
	}
	return sumSqVec(unsafe.SliceData(x), len(x))
}

// Max returns the largest value of x, NaN if x holds one, -Inf if x is empty.
func Max(x []float32) float32 {
	if !cpu.HasVectors {
		return plainMax(x)
	}
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	return maxVec(unsafe.SliceData(x), len(x))
}

// Add sets dst = x + y.
func Add(dst, x, y []float32) {
	if !cpu.HasVectors {
		plainAdd(dst, x, y)
		return
	}
	n := len(dst)
	addVec(at(dst, n), at(x, n), at(y, n), n)
}

// Sub sets dst = x - y.
func Sub(dst, x, y []float32) {
	if !cpu.HasVectors {
		plainSub(dst, x, y)
		return
	}
	n := len(dst)
	subVec(at(dst, n), at(x, n), at(y, n), n)
}

// Mul sets dst = x * y.
func Mul(dst, x, y []float32) {
	if !cpu.HasVectors {
		plainMul(dst, x, y)
		return
	}
	n := len(dst)
	mulVec(at(dst, n), at(x, n), at(y, n), n)
}

// Scale sets dst = a * x.
func Scale(dst []float32, a float32, x []float32) {
	if !cpu.HasVectors {
		plainScale(dst, a, x)
		return
	}
	n := len(dst)
	scaleVec(at(dst, n), at(x, n), n, a)
}

// Axpy sets dst += a * x, rounded once.
func Axpy(dst []float32, a float32, x []float32) {
	if !cpu.HasVectors {
		plainAxpy(dst, a, x)
		return
	}
	n := len(dst)
	axpyVec(at(dst, n), at(x, n), n, a)
}

// MulAdd sets dst += x * y, rounded once.
func MulAdd(dst, x, y []float32) {
	if !cpu.HasVectors {
		plainMulAdd(dst, x, y)
		return
	}
	n := len(dst)
	mulAddVec(at(dst, n), at(x, n), at(y, n), n)
}

// Axpby sets dst = a*x + b*y: b*y is added to the rounded a*x and the sum rounded once.
func Axpby(dst []float32, a float32, x []float32, b float32, y []float32) {
	if !cpu.HasVectors {
		plainAxpby(dst, a, x, b, y)
		return
	}
	n := len(dst)
	axpbyVec(at(dst, n), at(x, n), at(y, n), n, a, b)
}

// Fill sets dst = a.
func Fill(dst []float32, a float32) {
	if !cpu.HasVectors {
		plainFill(dst, a)
		return
	}
	fillVec(unsafe.SliceData(dst), len(dst), a)
}

// AddRows adds bias to each row of dst, which is rows x len(bias).
func AddRows(dst []float32, bias []float32) {
	n := len(bias)
	checkRows(dst, n)
	for i := 0; i < len(dst); i += n {
		Add(dst[i:i+n], dst[i:i+n], bias)
	}
}

// SumRows adds to dst the column sums of x, which is rows x len(dst). Memory is read
// from end to end, a row at a time, so rounding errors grow with the number of rows:
// sum many in blocks.
func SumRows(dst, x []float32) {
	n := len(dst)
	checkRows(x, n)
	for ; len(x) > 0; x = x[n:] {
		Add(dst, dst, x[:n])
	}
}

// EMA sets dst += w * (src - dst).
func EMA(dst, src []float32, w float32) {
	if !cpu.HasVectors {
		plainEMA(dst, src, w)
		return
	}
	n := len(dst)
	emaVec(at(dst, n), at(src, n), n, w)
}
