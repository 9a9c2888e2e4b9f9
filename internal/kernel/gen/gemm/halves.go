package main

import (
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// begin starts a function over n elements and returns its pointers.
func begin(name, signature, doc string) (dst, src, n reg.Register) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
	return Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
}

// eachAVX512 writes a loop over n elements by 16: body gets a mask, nil for all.
func eachAVX512(n reg.Register, body func(mask reg.Register), advance func()) {
	Label("whole")
	CMPQ(n, Imm(16))
	JL(LabelRef("rest"))
	body(nil)
	advance()
	SUBQ(Imm(16), n)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(n, n)
	JE(LabelRef("done"))
	ones, k := GP64(), K()
	MOVQ(I32(-1), ones)
	BZHIQ(n, ones, ones)
	KMOVW(ones.As32(), k)
	body(k)
	Label("done")
	VZEROUPPER()
	RET()
}

// convert writes the conversion of rows by the instruction of AVX-512 BF16.
func convert() {
	TEXT("gemmConvert", NOSPLIT, "func(dst *uint16, dstStride int, src *float32, srcStride, n, rows int)")
	Pragma("noescape")
	Doc("gemmConvert sets rows of dst to n values of src as bfloat16, values below 2^-126 in",
		"size to 0. The strides are in bytes.")
	dst, ds := Load(Param("dst"), GP64()), Load(Param("dstStride"), GP64())
	src, ss := Load(Param("src"), GP64()), Load(Param("srcStride"), GP64())
	n, rows := Load(Param("n"), GP64()), Load(Param("rows"), GP64())
	rest, ones, k := GP64(), GP64(), K()
	MOVQ(n, rest)
	ANDQ(Imm(15), rest)
	MOVQ(I32(-1), ones)
	BZHIQ(rest, ones, ones)
	KMOVW(ones.As32(), k)
	SHRQ(Imm(4), n)
	x, h := reg.Z0, reg.Z1
	d, s, count := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(n, count)
	TESTQ(count, count)
	JE(LabelRef("rest"))
	Label("whole")
	VMOVUPS(Mem{Base: s}, x)
	evex.VCVTNEPS2BF16(x, h)
	VMOVDQU(h.AsY(), Mem{Base: d})
	ADDQ(Imm(64), s)
	ADDQ(Imm(32), d)
	DECQ(count)
	JNZ(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JE(LabelRef("next"))
	VMOVUPS_Z(Mem{Base: s}, k, x)
	evex.VCVTNEPS2BF16(x, h)
	VMOVDQU16(h.AsY(), k, Mem{Base: d})
	Label("next")
	ADDQ(ds, dst)
	ADDQ(ss, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

var words = map[uint32]Mem{}

// word returns where a constant is stored.
func word(v uint32) Mem {
	if _, ok := words[v]; !ok {
		m := GLOBL("half"+hex(v), RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(v))
		}
		words[v] = m
	}
	return words[v]
}

func hex(v uint32) string {
	const digits = "0123456789abcdef"
	var b [8]byte
	for i := range b {
		b[i] = digits[v>>(28-4*i)&15]
	}
	return string(b[:])
}

// constant returns a register with v in each lane.
func constant(v uint32, r reg.VecVirtual) reg.VecVirtual {
	VPBROADCASTD(word(v), r)
	return r
}

// toHalvesAVX512 writes the conversion to bfloat16 by integer arithmetic, the
// steps of plainHalf. The instruction of AVX-512 BF16 would lose denormals.
func toHalvesAVX512() {
	dst, src, n := begin("toHalvesAVX512", "func(dst *uint16, src *float32, n int)", "is ToBF16 for n values.")
	one, most, quiet := constant(1, ZMM()), constant(0x7fff, ZMM()), constant(0x40, ZMM())
	eachAVX512(n, func(mask reg.Register) {
		x, upper, odd, nan := ZMM(), ZMM(), ZMM(), K()
		if mask == nil {
			VMOVUPS(Mem{Base: src}, x)
		} else {
			VMOVUPS_Z(Mem{Base: src}, mask, x)
		}
		roundByIntegers(x, upper, odd, nan, one, most, quiet)
		if mask == nil {
			VPMOVDW(x, Mem{Base: dst})
		} else {
			VPMOVDW(x, mask, Mem{Base: dst})
		}
	}, func() {
		ADDQ(Imm(64), src)
		ADDQ(Imm(32), dst)
	})
}

// toHalvesBF16 writes the conversion by the instruction of AVX-512 BF16, 32 values at a time, and by integers where one
// of them is denormal, which the instruction takes for 0.
func toHalvesBF16() {
	dst, src, n := begin("toHalvesBF16", "func(dst *uint16, src *float32, n int)",
		"is ToBF16 for n values, a multiple of 32.")
	one, most, quiet := constant(1, ZMM()), constant(0x7fff, ZMM()), constant(0x40, ZMM())
	const denormal = 0x20
	low, high, both := reg.Z0, reg.Z1, reg.Z2
	Label("whole")
	k := [2]reg.OpmaskVirtual{K(), K()}
	VMOVUPS(Mem{Base: src}, low)
	VMOVUPS(Mem{Base: src, Disp: 64}, high)
	VFPCLASSPSZ(Imm(denormal), low, k[0])
	VFPCLASSPSZ(Imm(denormal), high, k[1])
	KORTESTW(k[0], k[1])
	JNZ(LabelRef("integers"))
	evex.VCVTNE2PS2BF16(low, high, both)
	VMOVDQU64(both, Mem{Base: dst})
	Label("next")
	ADDQ(Imm(128), src)
	ADDQ(Imm(64), dst)
	SUBQ(Imm(32), n)
	JNZ(LabelRef("whole"))
	VZEROUPPER()
	RET()
	Label("integers")
	for i, x := range []reg.VecPhysical{low, high} {
		upper, odd, nan := ZMM(), ZMM(), K()
		roundByIntegers(x, upper, odd, nan, one, most, quiet)
		VPMOVDW(x, Mem{Base: dst, Disp: 32 * i})
	}
	JMP(LabelRef("next"))
}

// roundByIntegers rounds the float32 values of x to bfloat16 in the lower halves of its words, by the steps of
// plainHalf. The next three are registers to work in.
func roundByIntegers(x, upper, odd, nan, one, most, quiet reg.Register) {
	VCMPPS(Imm(3), x, x, nan) // unordered
	VPSRLD(Imm(16), x, upper)
	VPANDD(one, upper, odd)
	VPADDD(most, x, x)
	VPADDD(odd, x, x)
	VPSRLD(Imm(16), x, x)
	VPORD(quiet, upper, nan, x)
}

// toHalvesAVX2 is toHalvesAVX512 for a multiple of 16 values.
func toHalvesAVX2() {
	dst, src, n := begin("toHalvesAVX2", "func(dst *uint16, src *float32, n int)",
		"is ToBF16 for n values, a multiple of 16.")
	one, most, quiet := constant(1, YMM()), constant(0x7fff, YMM()), constant(0x40, YMM())
	Label("whole")
	var h [2]reg.VecVirtual
	for i := range h {
		x, upper, odd, nan := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: src, Disp: 32 * i}, x)
		VCMPPS(Imm(3), x, x, nan)
		VPSRLD(Imm(16), x, upper)
		VPAND(one, upper, odd)
		VPADDD(most, x, x)
		VPADDD(odd, x, x)
		VPSRLD(Imm(16), x, x)
		VPOR(quiet, upper, upper)
		VPBLENDVB(nan, upper, x, x)
		h[i] = x
	}
	both := YMM()
	VPACKUSDW(h[1], h[0], both)
	VPERMQ(Imm(0xd8), both, both) // the halves of 128 bits were packed apart
	VMOVDQU(both, Mem{Base: dst})
	ADDQ(Imm(64), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("whole"))
	VZEROUPPER()
	RET()
}

// fromHalvesAVX512 writes the conversion to float32.
func fromHalvesAVX512() {
	dst, src, n := begin("fromHalvesAVX512", "func(dst *float32, src *uint16, n int)", "is FromBF16 for n values.")
	eachAVX512(n, func(mask reg.Register) {
		x := ZMM()
		if mask == nil {
			VPMOVZXWD(Mem{Base: src}, x)
		} else {
			VPMOVZXWD_Z(Mem{Base: src}, mask, x)
		}
		VPSLLD(Imm(16), x, x)
		if mask == nil {
			VMOVUPS(x, Mem{Base: dst})
		} else {
			VMOVUPS(x, mask, Mem{Base: dst})
		}
	}, func() {
		ADDQ(Imm(32), src)
		ADDQ(Imm(64), dst)
	})
}

// fromHalvesAVX2 is fromHalvesAVX512 for a multiple of 8 values.
func fromHalvesAVX2() {
	dst, src, n := begin("fromHalvesAVX2", "func(dst *float32, src *uint16, n int)",
		"is FromBF16 for n values, a multiple of 8.")
	Label("whole")
	x := YMM()
	VPMOVZXWD(Mem{Base: src}, x)
	VPSLLD(Imm(16), x, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(Imm(16), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("whole"))
	VZEROUPPER()
	RET()
}
