package vector

// ToBF16 sets dst to src rounded to bfloat16, the upper half of a float32: to the
// nearest value, ties to the even one. NaN stays NaN, with the quiet bit set;
// values beyond the range become infinite.
func ToBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	toHalves(dst, src)
}

// FromBF16 sets dst to the float32 values that src stands for, which is exact.
func FromBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	fromHalves(dst, src)
}

// RoundBF16 sets dst to src rounded as ToBF16 does.
func RoundBF16(dst, src []float32) {
	src = src[:len(dst)]
	var half [256]uint16
	for len(dst) > 0 {
		n := min(len(dst), len(half))
		toHalves(half[:n], src[:n])
		fromHalves(dst[:n], half[:n])
		dst, src = dst[n:], src[n:]
	}
}
