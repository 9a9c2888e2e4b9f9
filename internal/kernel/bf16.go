package kernel

// ToBF16 sets dst to src rounded to bfloat16, the upper half of a float32: to the
// nearest value, ties to the even one. NaN stays NaN, with the quiet bit set;
// values beyond the range become infinite.
func ToBF16(dst []uint16, src []float32) {
	plainToBF16(dst, src)
}

// FromBF16 sets dst to the float32 values that src stands for, which is exact.
func FromBF16(dst []float32, src []uint16) {
	plainFromBF16(dst, src)
}

// roundBF16 sets dst to src rounded as ToBF16 does.
func roundBF16(dst, src []float32) {
	plainRoundBF16(dst, src)
}
