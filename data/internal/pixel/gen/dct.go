package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// inverseDCT does the eight columns of a block at once, turns the block over, and does its eight rows at once.
// The formulas are those of inverseDCTPlain in package pixel.
func inverseDCT() {
	TEXT("inverseDCTAVX2", NOSPLIT, "func(dst *uint8, stride int, c, steps *int16)")
	Pragma("noescape")
	Doc("inverseDCTAVX2 writes 8 rows of 8 bytes.")
	dst, stride, c, steps := arg("dst"), arg("stride"), arg("c"), arg("steps")
	row := func(i int) reg.VecVirtual {
		v := XMM()
		VMOVDQU(Mem{Base: c, Disp: 16 * i}, v)
		VPMULLW(Mem{Base: steps, Disp: 16 * i}, v, v)
		return v
	}
	below := XMM()
	VMOVDQU(Mem{Base: c, Disp: 16}, below)
	for i := 2; i < 8; i++ {
		VPOR(Mem{Base: c, Disp: 16 * i}, below, below)
	}
	VPTEST(below, below)
	JNE(LabelRef("full"))
	// Each column has its first number alone: a row repeats in all rows, so that the columns of the block turned over
	// are each one number.
	var d [8]reg.VecVirtual
	for i := range d {
		d[i] = XMM()
	}
	first := row(0)
	VPSLLW(Imm(2), first, first)
	for i := range d {
		VPSHUFB(pairOfBytes(i), first, d[i])
	}
	JMP(LabelRef("rows"))
	Label("full")
	var in [8]reg.VecVirtual
	for i := range in {
		in[i] = row(i)
	}
	turned := turn(pass(in, 11))
	for i, v := range turned {
		VMOVDQA(v.AsX(), d[i])
		VEXTRACTI128(Imm(1), v, d[4+i])
	}
	Label("rows")
	turned = turn(pass(d, 18))
	// Rows 0 and 4, 1 and 5 ... become bytes.
	for i := range 2 {
		a, b := turned[2*i], turned[2*i+1]
		VPACKSSWB(b, a, a)
		VPADDB(bytesOf128(), a, a)
		turned[i] = a
	}
	for i := range 4 {
		x := XMM()
		VEXTRACTI128(Imm(uint64(i/2)), turned[i%2], x)
		VMOVQ(x, Mem{Base: dst})
		VPEXTRQ(Imm(1), x, Mem{Base: dst, Index: stride, Scale: 1})
		if i < 3 {
			LEAQ(Mem{Base: dst, Index: stride, Scale: 2}, dst)
		}
	}
	end()
}

// pass transforms eight lines of 8 x 16 bits and drops so many bits of the 32 of each result.
func pass(in [8]reg.VecVirtual, bits uint64) (out [8]reg.VecVirtual) {
	// pairs has the numbers of two lines beside each other.
	pairs := func(a, b reg.VecVirtual) reg.VecVirtual {
		low, high := YMM(), XMM()
		VPUNPCKLWD(b, a, low.AsX())
		VPUNPCKHWD(b, a, high)
		VINSERTI128(Imm(1), high, low, low)
		return low
	}
	times := func(v reg.VecVirtual, a, b int16) reg.VecVirtual {
		t := YMM()
		VPMADDWD(words(uint32(uint16(a))|uint32(uint16(b))<<16), v, t)
		return t
	}
	sum, difference := XMM(), XMM()
	VPADDW(in[4], in[0], sum)
	VPSUBW(in[4], in[0], difference)
	even := [2]reg.VecVirtual{YMM(), YMM()}
	for i, v := range []reg.VecVirtual{sum, difference} {
		VPMOVSXWD(v, even[i])
		VPSLLD(Imm(13), even[i], even[i])
	}
	p := pairs(in[2], in[6])
	even2, even3 := times(p, 4433, 4433-15137), times(p, 4433+6270, 4433)
	z3, z4 := XMM(), XMM()
	VPADDW(in[3], in[7], z3)
	VPADDW(in[1], in[5], z4)
	p = pairs(z3, z4)
	odd3, odd4 := times(p, 9633-16069, 9633), times(p, 9633, 9633-3196)
	p, q := pairs(in[7], in[1]), pairs(in[5], in[3])
	odds := [4]reg.VecVirtual{times(p, -7373, 12299-7373), times(q, -20995, 25172-20995), times(q, 16819-20995, -20995),
		times(p, 2446-7373, -7373)}
	for i, v := range []reg.VecVirtual{odd4, odd3, odd4, odd3} {
		VPADDD(v, odds[i], odds[i])
	}
	half := words(1 << (bits - 1))
	VPADDD(half, even[0], even[0])
	VPADDD(half, even[1], even[1])
	for i, k := range []struct {
		a, b reg.VecVirtual
		less bool
	}{{even[0], even3, false}, {even[1], even2, false}, {even[1], even2, true}, {even[0], even3, true}} {
		s := YMM()
		if k.less {
			VPSUBD(k.b, k.a, s)
		} else {
			VPADDD(k.b, k.a, s)
		}
		out[i], out[7-i] = YMM(), YMM()
		VPADDD(odds[i], s, out[i])
		VPSUBD(odds[i], s, out[7-i])
		VPSRAD(Imm(bits), out[i], out[i])
		VPSRAD(Imm(bits), out[7-i], out[7-i])
	}
	return out
}

// turn cuts eight lines of 8 x 32 bits to 16 bits and exchanges lines and numbers: lines 0 and 4, 1 and 5, 2 and 6, 3
// and 7.
func turn(in [8]reg.VecVirtual) (out [4]reg.VecVirtual) {
	both := func(f func(ops ...Op), a, b reg.VecVirtual) reg.VecVirtual {
		t := YMM()
		f(b, a, t)
		return t
	}
	lows := func(a, b reg.VecVirtual) reg.VecVirtual { return both(VPUNPCKLWD, a, b) }
	highs := func(a, b reg.VecVirtual) reg.VecVirtual { return both(VPUNPCKHWD, a, b) }
	var quads [4]reg.VecVirtual // numbers 0 and 1, 2 and 3 of lines 0 to 3, then of 4 to 7; 4 more in the other half
	for i := range 2 {
		a, b := both(VPACKSSDW, in[4*i], in[4*i+1]), both(VPACKSSDW, in[4*i+2], in[4*i+3])
		low, high := lows(a, b), highs(a, b)
		quads[2*i], quads[2*i+1] = lows(low, high), highs(low, high)
	}
	for i := range 2 {
		out[2*i], out[2*i+1] = both(VPUNPCKLQDQ, quads[i], quads[2+i]), both(VPUNPCKHQDQ, quads[i], quads[2+i])
	}
	return out
}

// pairOfBytes is the index that repeats the 16 bits of lane i.
func pairOfBytes(i int) Mem {
	var v [16]int
	for j := range v {
		v[j] = 2*i + j%2
	}
	return bytes16("lane"+string(rune('0'+i)), v)
}

// bytesOf128 is 32 times 128.
func bytesOf128() Mem { return words(0x80808080) }
