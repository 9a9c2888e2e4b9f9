package vector

import "math"

// plainHalf returns the bits of x as a bfloat16.
func plainHalf(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40 // the payload may lie in the lower half alone
	}
	// Adding just under one half of the last place carries into the upper half
	// where the lower half is above it; an odd upper half adds the missing bit.
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// plainToBF16 is ToBF16 in Go.
func plainToBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = plainHalf(src[i])
	}
}

// plainFromBF16 is FromBF16 in Go.
func plainFromBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(src[i]) << 16)
	}
}
