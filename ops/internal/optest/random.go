package optest

import (
	"math"
	"math/rand/v2"
)

// RandomInts returns n integers in [0, below).
func RandomInts(r *rand.Rand, n, below int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(r.IntN(below))
	}
	return x
}

// RandomShapes returns n shapes whose sides are drawn from 1 to each limit.
func RandomShapes(r *rand.Rand, n int, limits ...int) [][]int {
	shapes := make([][]int, n)
	for i := range shapes {
		for _, l := range limits {
			shapes[i] = append(shapes[i], 1+r.IntN(l))
		}
	}
	return shapes
}

// UnitRows returns n rows of length 1 with width values each.
func UnitRows(r *rand.Rand, n, width int) []float32 {
	x := make([]float32, n*width)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range n {
		Normalise(x[i*width : (i+1)*width])
	}
	return x
}

// Normalise brings x to unit length.
func Normalise(x []float32) {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / math.Sqrt(s))
	}
}

// Rounded returns x rounded to bfloat16, to nearest and ties to even.
func Rounded(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		b := math.Float32bits(v)
		b += 0x7fff + b>>16&1
		out[i] = float64(math.Float32frombits(b &^ 0xffff))
	}
	return out
}

// Sums returns sums over k of f (m, n).
func Sums(m, n, k int, f func(i, j, k int) float64) []float32 {
	out := make([]float32, m*n)
	for i := range m {
		for j := range n {
			var s float64
			for p := range k {
				s += f(i, j, p)
			}
			out[i*n+j] = float32(s)
		}
	}
	return out
}
