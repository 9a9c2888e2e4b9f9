package pixel

// Coefficients are 8 x 8 numbers of a JPEG block, column by column: that of row y and column x is at 8x + y.
type Coefficients [64]int32

// InverseDCT multiplies coefficients by the steps of their quantisation and writes the 8 x 8 bytes that they
// stand for to dst, rows stride apart. The bits are those of image/jpeg: the fast DCT of Loeffler, Ligtenberg
// and Moshovitz (ICASSP 1989) in fixed point, rows first, with its shifts and its rounding. c is changed.
func InverseDCT(dst []uint8, stride int, c, steps *Coefficients) {
	_ = dst[7*stride+7]
	if hasAVX2 {
		inverseDCTAVX2(&dst[0], stride, &c[0], &steps[0])
		return
	}
	inverseDCTPlain(dst, stride, c, steps)
}

// Constants of the transform, in fixed point of the given number of bits:
// cosines and sines of 3 pi/16 and pi/16, 1/sqrt 2, and that times those of 6 pi/16.
const (
	dctCos3x12, dctSin3x12         = 3406, 2276
	dctCos1x12, dctSin1x12         = 4017, 799
	dctRoot8, dctRoot14            = 181, 11585
	dctRootCos6x12, dctRootSin6x12 = 1108, 2676
	dctRootCos6x18, dctRootSin6x18 = 70936, 171254
)

func inverseDCTPlain(dst []uint8, stride int, c, steps *Coefficients) {
	for i, s := range steps {
		c[i] *= s
	}
	for y := range 8 {
		x0, x1, x2, x3, x4, x5, x6, x7 := c[y]<<17, c[32+y]<<17, c[16+y], c[48+y], c[56+y]<<7, c[24+y], c[40+y],
			c[8+y]<<7
		x0, x1 = x0+x1, x0-x1
		x2, x3 = turn(x2, x3, dctRootCos6x18, dctRootSin6x18)
		x1, x2 = x1+x2, x1-x2
		x0, x3 = x0+x3, x0-x3
		x7, x4 = x7+x4, x7-x4
		x6, x5 = x6*dctRoot8, x5*dctRoot8
		x7, x5 = x7+x5, x7-x5
		x4, x6 = x4+x6, x4-x6
		x4, x7 = turn(x4>>2, x7>>2, dctCos3x12, dctSin3x12)
		x5, x6 = turn(x5>>2, x6>>2, dctCos1x12, dctSin1x12)
		c[y], c[56+y] = x0+x7, x0-x7
		c[8+y], c[48+y] = x1+x6, x1-x6
		c[16+y], c[40+y] = x2+x5, x2-x5
		c[24+y], c[32+y] = x3+x4, x3-x4
	}
	for x := range 8 {
		v := c[8*x : 8*x+8 : 8*x+8]
		x0, x1, x2, x3, x4, x5, x6, x7 := v[0]+1<<19, v[4], v[2], v[6], v[7], v[3], v[5], v[1]
		x0, x1 = (x0+x1)>>2, (x0-x1)>>2
		x2, x3 = turn(x2>>13, x3>>13, dctRootCos6x12, dctRootSin6x12)
		x1, x2 = x1+x2, x1-x2
		x0, x3 = x0+x3, x0-x3
		x7, x4 = x7+x4, x7-x4
		x5, x6 = (x5>>13)*dctRoot14, (x6>>13)*dctRoot14
		x7, x5 = x7+x5, x7-x5
		x4, x6 = x4+x6, x4-x6
		x4, x7 = turn(x4>>14, x7>>14, dctCos3x12, dctSin3x12)
		x5, x6 = turn(x5>>14, x6>>14, dctCos1x12, dctSin1x12)
		for y, v := range [8]int32{x0 + x7, x1 + x6, x2 + x5, x3 + x4, x3 - x4, x2 - x5, x1 - x6, x0 - x7} {
			dst[y*stride+x] = uint8(min(max(v>>18, -128), 127) + 128)
		}
	}
}

// turn rotates (a, b) back by an angle, three products instead of four.
func turn(a, b, cos, sin int32) (int32, int32) {
	sum := cos * (a + b)
	return sum - (sin+cos)*b, sum - (cos-sin)*a
}
