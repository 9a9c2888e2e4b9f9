package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// warp writes bilinear resampling of pixels in groups of four. Positions are in
// 1/1024 pixel, weights in 1/32: bytes times weights fit 16 bits after the first
// axis and 32 bits after the second.
func warp() {
	s := &isa{name: "AVX2"}
	s.begin("warp", "func(dst, src *uint8, xs, ys *int32, groups int, x0, y0 int32, width int)",
		"resamples 4*groups pixels at (x0+xs[i], y0+ys[i]), all inside, and writes 2 bytes more.")
	dst, src, xs, ys := arg("dst"), arg("src"), arg("xs"), arg("ys")
	groups, width := arg("groups"), arg("width")
	spread := func(name string) reg.VecVirtual {
		v := XMM()
		VMOVD(Load(Param(name), GP32()), v)
		VPBROADCASTD(v, v)
		return v
	}
	start := [2]reg.VecVirtual{spread("x0"), spread("y0")}
	stride := GP64()
	LEAQ(Mem{Base: width, Index: width, Scale: 2}, stride)
	pixels := XMM()
	VMOVQ(width, pixels)
	VPBROADCASTD(pixels, pixels)
	below := GP64()
	MOVQ(src, below)
	ADDQ(stride, below)

	Label("group")
	var whole, part [2]reg.VecVirtual
	for i, deltas := range []reg.Register{xs, ys} {
		f := XMM()
		VPADDD(Mem{Base: deltas}, start[i], f)
		VPSRAD(Imm(5), f, f)
		whole[i], part[i] = XMM(), XMM()
		VPAND(words(31), f, part[i])
		VPSRAD(Imm(5), f, whole[i])
	}
	// Offsets of the upper left pixels.
	offset, twice := XMM(), XMM()
	VPMULLD(pixels, whole[1], offset)
	VPADDD(whole[0], offset, offset)
	VPADDD(offset, offset, twice)
	VPADDD(twice, offset, offset)
	var at [4]reg.GPVirtual
	for i := range 2 {
		at[2*i], at[2*i+1] = GP64(), GP64()
		if i == 0 {
			VMOVQ(offset, at[1])
		} else {
			VPEXTRQ(Imm(1), offset, at[3])
		}
		MOVL(at[2*i+1].As32(), at[2*i].As32())
		SHRQ(Imm(32), at[2*i+1])
	}
	// Bytes R0 R1 G0 G1 B0 B1 of the pixel and its right neighbour, two pixels in
	// each half.
	pairs := bytes32("pairs", [16]int{0, 3, 1, 4, 2, 5, -1, -1, 8, 11, 9, 12, 10, 13, -1, -1})
	read := func(base reg.Register) reg.VecVirtual {
		v, high := YMM(), XMM()
		VMOVQ(Mem{Base: base, Index: at[0], Scale: 1}, v.AsX())
		VPINSRQ(Imm(1), Mem{Base: base, Index: at[1], Scale: 1}, v.AsX(), v.AsX())
		VMOVQ(Mem{Base: base, Index: at[2], Scale: 1}, high)
		VPINSRQ(Imm(1), Mem{Base: base, Index: at[3], Scale: 1}, high, high)
		VINSERTI128(Imm(1), high, v, v)
		VPSHUFB(pairs, v, v)
		return v
	}
	upper, lower := read(src), read(below)
	// Weights 32-a and a: as bytes along the row, as 16-bit values down.
	weigh := func(part reg.VecVirtual, shift uint64) reg.VecVirtual {
		w, v := XMM(), YMM()
		VMOVDQU(words(32), w)
		VPSUBD(part, w, w)
		VPSLLD(Imm(shift), part, part)
		VPOR(part, w, w)
		VPMOVZXDQ(w, v)
		return v
	}
	across := weigh(part[0], 8)
	VPSHUFB(bytes32("repeat", [16]int{0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9}), across, across)
	down := weigh(part[1], 16)
	VPMADDUBSW(across, upper, upper)
	VPMADDUBSW(across, lower, lower)
	var sum [2]reg.VecVirtual // pixels 0 and 2, 1 and 3
	for i, w := range []uint64{0x00, 0xaa} {
		sum[i] = YMM()
		if i == 0 {
			VPUNPCKLWD(lower, upper, sum[i])
		} else {
			VPUNPCKHWD(lower, upper, sum[i])
		}
		t := YMM()
		VPSHUFD(Imm(w), down, t)
		VPMADDWD(t, sum[i], sum[i])
		VPADDD(words(512), sum[i], sum[i])
		VPSRLD(Imm(10), sum[i], sum[i])
	}
	out, high := YMM(), XMM()
	VPACKUSDW(sum[1], sum[0], out)
	VPACKUSWB(out, out, out)
	VPSHUFB(bytes32("pixels", [16]int{0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}), out, out)
	VEXTRACTI128(Imm(1), out, high)
	VMOVQ(out.AsX(), Mem{Base: dst})
	VMOVQ(high, Mem{Base: dst, Disp: 6})
	ADDQ(Imm(12), dst)
	ADDQ(Imm(16), xs)
	ADDQ(Imm(16), ys)
	DECQ(groups)
	JNE(LabelRef("group"))
	end()
}

// bytes32 is bytes16 twice.
func bytes32(name string, v [16]int) Mem {
	if m, ok := stored[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		b := v[i%16]
		DATA(i, U8(uint8(b&0x7f|b>>8&0x80)))
	}
	stored[name] = m
	return m
}
