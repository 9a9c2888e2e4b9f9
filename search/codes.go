package search

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// A coded row is a vector of D numbers as D bytes and a scale: number i is about code i times
// the scale. Rows are as wide as vector.DotCodes wants them, with zeros at the end. A query is
// coded to as many bits as the products have room for, 12 to 15, so that what is lost is lost
// in the rows.

// codeWidth returns W, the codes of a row of d numbers.
func codeWidth(d int) int { return (d + vector.CodeWidth - 1) / vector.CodeWidth * vector.CodeWidth }

// code sets dst (W) to the codes of x (D) and returns their scale.
func code(dst []int8, x []float32) float32 {
	largest := largestSize(x)
	scale := largest / math.MaxInt8
	if scale == 0 { // a row of zeros, or nearly
		clear(dst)
		return 0
	}
	for i, v := range x {
		dst[i] = int8(math.RoundToEven(float64(v / scale)))
	}
	clear(dst[len(x):])
	return scale
}

// codeQuery sets dst (W) to the codes of x (D) and returns their scale.
func codeQuery(dst []int16, x []float32) float32 {
	scale := largestSize(x) / float32(vector.CodeLimit(len(dst))-1)
	if scale == 0 {
		clear(dst)
		return 0
	}
	for i, v := range x {
		dst[i] = int16(math.RoundToEven(float64(v / scale)))
	}
	clear(dst[len(x):])
	return scale
}

func largestSize(x []float32) float32 {
	var m float32
	for _, v := range x {
		m = max(m, float32(math.Abs(float64(v))))
	}
	return m
}
