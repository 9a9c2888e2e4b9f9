package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// inverseDCT does the eight rows of a block at once, turns the block over, and does its eight columns at once.
// The formulas are those of inverseDCTPlain in package pixel.
func inverseDCT() {
	TEXT("inverseDCTAVX2", NOSPLIT, "func(dst *uint8, stride int, c, steps *int32)")
	Pragma("noescape")
	Doc("inverseDCTAVX2 writes 8 rows of 8 bytes, of coefficients column by column.")
	dst, stride, c, steps := arg("dst"), arg("stride"), arg("c"), arg("steps")
	d := dct{}
	column := func(i int) reg.VecVirtual {
		v := YMM()
		VMOVDQU(Mem{Base: c, Disp: 32 * i}, v)
		VPMULLD(Mem{Base: steps, Disp: 32 * i}, v, v)
		return v
	}
	for i, from := range [8]int{0, 4, 2, 6, 7, 3, 5, 1} {
		d[i] = column(from)
	}
	for _, i := range []int{0, 1} {
		VPSLLD(Imm(17), d[i], d[i])
	}
	for _, i := range []int{4, 7} {
		VPSLLD(Imm(7), d[i], d[i])
	}
	d.butterfly(0, 1)
	d.turn(2, 3, 70936, 171254)
	d.rest(181, 0, 2)
	d = d.transpose()

	d = dct{d[0], d[4], d[2], d[6], d[7], d[3], d[5], d[1]}
	VPADDD(words(1<<19), d[0], d[0])
	d.butterfly(0, 1)
	for _, i := range []int{0, 1} {
		VPSRAD(Imm(2), d[i], d[i])
	}
	for _, i := range []int{2, 3} {
		VPSRAD(Imm(13), d[i], d[i])
	}
	d.turn(2, 3, 1108, 2676)
	d.rest(11585, 13, 14)
	for i := range d {
		VPSRAD(Imm(18), d[i], d[i])
	}
	// Four rows at a time become bytes; the packs work on halves of a vector.
	order := YMM()
	VMOVDQU(ints("rowsOfPack", [8]int{0, 4, 1, 5, 2, 6, 3, 7}), order)
	for i := range 2 {
		r := d[4*i : 4*i+4]
		VPACKSSDW(r[1], r[0], r[0])
		VPACKSSDW(r[3], r[2], r[2])
		VPADDSW(shorts(128), r[0], r[0])
		VPADDSW(shorts(128), r[2], r[2])
		VPACKUSWB(r[2], r[0], r[0])
		VPERMD(r[0], order, r[0])
		for j := range 2 {
			var x Op = r[0].AsX()
			if j == 1 {
				high := XMM()
				VEXTRACTI128(Imm(1), r[0], high)
				x = high
			}
			VMOVQ(x, Mem{Base: dst})
			VPEXTRQ(Imm(1), x, Mem{Base: dst, Index: stride, Scale: 1})
			if i+j < 2 {
				LEAQ(Mem{Base: dst, Index: stride, Scale: 2}, dst)
			}
		}
	}
	end()
}

// dct is eight numbers of eight lines.
type dct [8]reg.VecVirtual

// butterfly sets a and b to a+b and a-b.
func (d *dct) butterfly(a, b int) {
	difference := YMM()
	VPSUBD(d[b], d[a], difference)
	VPADDD(d[b], d[a], d[a])
	d[b] = difference
}

// turn rotates a and b back by an angle of this cosine and sine.
func (d *dct) turn(a, b int, cos, sin int32) {
	sum := YMM()
	VPADDD(d[b], d[a], sum)
	VPMULLD(words(uint32(cos)), sum, sum)
	VPMULLD(words(uint32(sin+cos)), d[b], d[b])
	VPMULLD(words(uint32(cos-sin)), d[a], d[a])
	VPSUBD(d[b], sum, d[b])
	VPSUBD(d[a], sum, d[a])
	d[a], d[b] = d[b], d[a]
}

// rest is what both directions do after x0 to x3 were turned: root is 1/sqrt 2, for which x5 and x6 lose
// some bits, and before the last turns others do. The results are in order.
func (d *dct) rest(root int32, less, shift uint64) {
	d.butterfly(1, 2)
	d.butterfly(0, 3)
	d.butterfly(7, 4)
	for _, i := range []int{5, 6} {
		if less > 0 {
			VPSRAD(Imm(less), d[i], d[i])
		}
		VPMULLD(words(uint32(root)), d[i], d[i])
	}
	d.butterfly(7, 5)
	d.butterfly(4, 6)
	for i := 4; i < 8; i++ {
		VPSRAD(Imm(shift), d[i], d[i])
	}
	d.turn(4, 7, 3406, 2276)
	d.turn(5, 6, 4017, 799)
	for i := range 4 {
		d.butterfly(i, 7-i)
	}
}

// transpose exchanges lines and numbers.
func (d dct) transpose() dct {
	var pairs, fours, out dct
	for i := range 4 {
		a, b := d[2*i], d[2*i+1]
		low, high := YMM(), YMM()
		VPUNPCKLDQ(b, a, low)
		VPUNPCKHDQ(b, a, high)
		pairs[2*i], pairs[2*i+1] = low, high
	}
	for i := range 2 { // numbers 4i to 4i+3 of lines 0, 1, 2, 3 and of 4, 5, 6, 7 in the other half
		for j := range 2 {
			a, b := pairs[4*i+j], pairs[4*i+2+j]
			low, high := YMM(), YMM()
			VPUNPCKLQDQ(b, a, low)
			VPUNPCKHQDQ(b, a, high)
			fours[4*i+2*j], fours[4*i+2*j+1] = low, high
		}
	}
	for i := range 4 {
		low, high := YMM(), YMM()
		VPERM2I128(Imm(0x20), fours[4+i], fours[i], low)
		VPERM2I128(Imm(0x31), fours[4+i], fours[i], high)
		out[i], out[4+i] = low, high
	}
	return out
}

// ints returns 8 numbers in memory.
func ints(name string, v [8]int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, n := range v {
		DATA(4*i, U32(uint32(n)))
	}
	return m
}
