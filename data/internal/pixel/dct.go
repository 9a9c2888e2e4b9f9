package pixel

import "encoding/binary"

// Block are 8 x 8 numbers of a JPEG block, row by row: coefficients, or the steps of their quantisation.
type Block [64]int16

// InverseDCT multiplies coefficients by their steps and writes the 8 x 8 bytes that they stand for to dst, rows stride
// apart. The bits are those of libjpeg-turbo's vector code for its accurate transform: that of Loeffler, Ligtenberg and
// Moshovitz (ICASSP 1989) with constants of 13 bits, columns first, with its rounding. Where numbers of damaged files
// are out of range, products and sums of two wrap at 16 bits, and results of a pass end at the range of 16 bits.
func InverseDCT(dst []uint8, stride int, c, steps *Block) {
	_ = dst[7*stride+7]
	if hasAVX2 {
		inverseDCTAVX2(&dst[0], stride, &c[0], &steps[0])
		return
	}
	inverseDCTPlain(dst, stride, c, steps)
}

// Fill writes 8 rows of the 8 bytes of v to dst, rows stride apart.
func Fill(dst []uint8, stride int, v uint64) {
	_ = dst[7*stride+7]
	for y := range 8 {
		binary.NativeEndian.PutUint64(dst[y*stride:], v)
	}
}

// Constants of the transform (figure 1 of the paper, whose numbers these are), in fixed point of 13 bits.
const (
	dct0298, dct0390, dct0541, dct0765 = 2446, 3196, 4433, 6270
	dct0899, dct1175, dct1501, dct1847 = 7373, 9633, 12299, 15137
	dct1961, dct2053, dct2562, dct3072 = 16069, 16819, 20995, 25172
)

func inverseDCTPlain(dst []uint8, stride int, c, steps *Block) {
	var w Block
	below := int16(0)
	for _, v := range c[8:] {
		below |= v
	}
	for x := range 8 {
		var in [8]int16
		for y := range in {
			in[y] = int16(int32(c[8*y+x]) * int32(steps[8*y+x]))
		}
		if below == 0 { // all columns have their first number alone
			for y := range 8 {
				w[8*y+x] = in[0] << 2
			}
			continue
		}
		for y, v := range dctPass(&in, 11) {
			w[8*y+x] = v
		}
	}
	for y := range 8 {
		for x, v := range dctPass((*[8]int16)(w[8*y:]), 18) {
			dst[y*stride+x] = uint8(min(max(v, -128), 127) + 128)
		}
	}
}

// dctPass transforms 8 numbers, and drops so many bits.
func dctPass(in *[8]int16, bits uint) (out [8]int16) {
	times := func(a, b int16, ka, kb int32) int32 { return int32(a)*ka + int32(b)*kb }
	even0, even1 := int32(in[0]+in[4])<<13, int32(in[0]-in[4])<<13
	even2, even3 := times(in[2], in[6], dct0541, dct0541-dct1847), times(in[2], in[6], dct0541+dct0765, dct0541)
	z3, z4 := in[7]+in[3], in[5]+in[1]
	odd3, odd4 := times(z3, z4, dct1175-dct1961, dct1175), times(z3, z4, dct1175, dct1175-dct0390)
	sums := [4]int32{even0 + even3, even1 + even2, even1 - even2, even0 - even3}
	odds := [4]int32{
		times(in[7], in[1], -dct0899, dct1501-dct0899) + odd4,
		times(in[5], in[3], -dct2562, dct3072-dct2562) + odd3,
		times(in[5], in[3], dct2053-dct2562, -dct2562) + odd4,
		times(in[7], in[1], dct0298-dct0899, -dct0899) + odd3,
	}
	half := int32(1) << (bits - 1)
	for i, s := range sums {
		out[i] = int16(min(max((s+odds[i]+half)>>bits, -1<<15), 1<<15-1))
		out[7-i] = int16(min(max((s-odds[i]+half)>>bits, -1<<15), 1<<15-1))
	}
	return out
}
