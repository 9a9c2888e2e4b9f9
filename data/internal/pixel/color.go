package pixel

import "fmt"

// YCbCr converts a row of len(y) JPEG colours to RGB (ITU-T T.871, 7), in the fixed point of libjpeg: 16 bits, rounded.
func YCbCr(dst, y, cb, cr []uint8) {
	n := len(y)
	if len(dst) < 3*n || len(cb) < n || len(cr) < n {
		panic(fmt.Sprintf("pixel: %d values of brightness need as many of colour (got %d and %d) and room for 3 times that (got %d)", n, len(cb), len(cr), len(dst)))
	}
	if n < least || !hasAVX2 {
		yCbCrPlain(dst, y, cb, cr)
		return
	}
	yCbCrAVX2(&dst[0], &y[0], &cb[0], &cr[0], n)
}

func yCbCrPlain(dst, y, cb, cr []uint8) {
	cb, cr = cb[:len(y)], cr[:len(y)]
	for x, v := range y {
		o := dst[3*x : 3*x+3 : 3*x+3]
		l, b, r := int32(v)<<16+1<<15, int32(cb[x])-128, int32(cr[x])-128
		o[0], o[1], o[2] = cut(l+91881*r), cut(l-22554*b-46802*r), cut(l+116130*b)
	}
}

// cut is the byte nearest to v / 2^16.
func cut(v int32) uint8 { return uint8(min(max(v>>16, 0), 255)) }

// Weigh sets dst[i] = 3 near[i] + far[i].
func Weigh(dst []uint16, near, far []uint8) {
	n := len(dst)
	near, far = near[:n], far[:n]
	if n >= least && hasAVX2 {
		weighAVX2(&dst[0], &near[0], &far[0], n)
		return
	}
	weighPlain(dst, near, far)
}

func weighPlain(dst []uint16, near, far []uint8) {
	for i := range dst {
		dst[i] = 3*uint16(near[i]) + uint16(far[i])
	}
}

// Stretch doubles a row of n = len(sums)-2 colour values, each 4 times its size in
// sums[1:n+1], with weights 3/4 and 1/4; sums[0] and sums[n+1] continue the row.
func Stretch(dst []uint8, sums []uint16) {
	n := len(sums) - 2
	if n < 0 || len(dst) < 2*n {
		panic(fmt.Sprintf("pixel: %d values do not fit a row of %d", n, len(dst)))
	}
	if n >= least && hasAVX2 {
		stretchAVX2(&dst[0], &sums[1], n)
		return
	}
	stretchPlain(dst, sums)
}

func stretchPlain(dst []uint8, sums []uint16) {
	for i := range len(sums) - 2 {
		v := 3 * sums[i+1]
		dst[2*i] = uint8((v + sums[i] + 8) >> 4)
		dst[2*i+1] = uint8((v + sums[i+2] + 7) >> 4)
	}
}

// StretchRow doubles a row of samples with weights 3/4 and 1/4; the ends are repeated.
func StretchRow(dst, src []uint8) {
	n := len(src)
	dst = dst[:2*n]
	if n < least+2 || !hasAVX2 {
		stretchRowPlain(dst, src)
		return
	}
	stretchRowAVX2(&dst[2], &src[1], n-2)
	a, b, c, d := uint16(src[0]), uint16(src[1]), uint16(src[n-2]), uint16(src[n-1])
	dst[0], dst[1] = uint8(a), uint8((3*a+b+2)>>2)
	dst[2*n-2], dst[2*n-1] = uint8((3*d+c+1)>>2), uint8(d)
}

func stretchRowPlain(dst, src []uint8) {
	n := len(src)
	for i, v := range src {
		v := 3 * uint16(v)
		dst[2*i] = uint8((v + uint16(src[max(i-1, 0)]) + 1) >> 2)
		dst[2*i+1] = uint8((v + uint16(src[min(i+1, n-1)]) + 2) >> 2)
	}
}

// Sharpen writes to dst the row moved away from its smoothed self by factor, with
// the 3x3 kernel of 1/13 and 5/13 in the middle; up and down are its neighbours.
// The first and the last pixel stay as they are.
func Sharpen(dst, up, row, down []uint8, factor float32) {
	n := len(row)
	dst, up, down = dst[:n], up[:n], down[:n]
	copy(dst[:min(3, n)], row)
	copy(dst[max(0, n-3):], row[max(0, n-3):])
	if n <= 6 {
		return
	}
	switch n := n - 6; {
	case n < least || !hasAVX2:
		sharpenPlain(dst, up, row, down, factor)
	case hasWide:
		sharpenAVX512(&dst[3], &up[3], &row[3], &down[3], n, factor)
	default:
		sharpenAVX2(&dst[3], &up[3], &row[3], &down[3], n, factor)
	}
}

func sharpenPlain(dst, up, row, down []uint8, factor float32) {
	for i := 3; i < len(row)-3; i++ {
		sum := int(up[i-3]) + int(up[i]) + int(up[i+3]) +
			int(row[i-3]) + 5*int(row[i]) + int(row[i+3]) +
			int(down[i-3]) + int(down[i]) + int(down[i+3])
		dst[i] = Blend(float32((2*sum+13)/26), float32(row[i]), factor)
	}
}

// Blend is a + f*(b-a), cut to the range of a byte and truncated.
func Blend(a, b, f float32) uint8 {
	v := a + float32(f*(b-a))
	if v <= 0 {
		return 0
	}
	if v >= 255 {
		return 255
	}
	return uint8(v)
}
