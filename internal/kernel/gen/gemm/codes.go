package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dequantize stores what the sums of codes stand for, in this order, so that all processors round alike:
//
//	C[i][j] = float32(sum - offsets[j]) * scales[j] * rows[i]
//
// A of 16 bits has its signs, and no offsets. All registers but the sums are free.
func (s set) dequantize(get func(int) reg.GPVirtual, cols int, sums []reg.VecPhysical, free func() reg.VecPhysical,
	masks []reg.OpmaskVirtual) {
	scales, byRow := get(offScales), get(offRows)
	scale, row := free(), free()
	var offset reg.VecPhysical
	var offsets reg.GPVirtual
	if s.of == bytes {
		offset, offsets = free(), get(offOffsets)
	}
	first, stride, c := get(offC), get(offCRow), GP64()
	for j := range cols {
		at, rows := j*s.lanes*floatSize, len(sums)/cols
		VMOVUPS(Mem{Base: scales, Disp: at}, scale)
		if s.of == bytes {
			VMOVUPS(Mem{Base: offsets, Disp: at}, offset)
		}
		MOVQ(first, c)
		for i := range rows {
			sum, m := sums[i*cols+j], Mem{Base: c, Disp: at}
			if s.of == bytes {
				VPSUBD(offset, sum, sum)
			}
			VCVTDQ2PS(sum, sum)
			VMULPS(scale, sum, sum)
			VBROADCASTSS(Mem{Base: byRow, Disp: i * floatSize}, row)
			VMULPS(row, sum, sum)
			if s.wide {
				VMOVUPS(sum, masks[j], m)
			} else {
				VMOVUPS(sum, m)
			}
			if i+1 < rows {
				ADDQ(stride, c)
			}
		}
	}
	VZEROUPPER()
	RET()
}

// largest writes the search for the largest size of a row: that of the largest bits without the sign, which order NaN
// above infinity above all numbers.
func largest(wide bool) {
	name, lanes, vector := "gemmLargestAVX2", 8, func() reg.VecVirtual { return YMM() }
	if wide {
		name, lanes, vector = "gemmLargestAVX512", 16, func() reg.VecVirtual { return ZMM() }
	}
	TEXT(name, NOSPLIT, "func(src *float32, n int) uint32")
	Pragma("noescape")
	Doc(name + " returns the largest bits of n values of src, at least one whole vector of them, without their signs.")
	src, n := Load(Param("src"), GP64()), Load(Param("n"), GP64())
	sizes := constant(math.MaxInt32, vector())
	most := [2]reg.VecVirtual{vector(), vector()}
	for _, m := range most {
		VXORPS(m.AsY(), m.AsY(), m.AsY())
	}
	step := lanes * floatSize
	take := func(at Mem, to reg.VecVirtual) {
		x := vector()
		if wide {
			VPANDD(at, sizes, x)
		} else {
			VPAND(at, sizes, x)
		}
		VPMAXUD(x, to, to)
	}
	Label("two")
	CMPQ(n, Imm(uint64(2*lanes)))
	JL(LabelRef("one"))
	take(Mem{Base: src}, most[0])
	take(Mem{Base: src, Disp: step}, most[1])
	ADDQ(Imm(uint64(2*step)), src)
	SUBQ(Imm(uint64(2*lanes)), n)
	JMP(LabelRef("two"))
	Label("one")
	CMPQ(n, Imm(uint64(lanes)))
	JL(LabelRef("rest"))
	take(Mem{Base: src}, most[0])
	ADDQ(Imm(uint64(step)), src)
	SUBQ(Imm(uint64(lanes)), n)
	Label("rest") // ends with the last value: some are read again
	take(Mem{Base: src, Index: n, Scale: floatSize, Disp: -step}, most[1])
	VPMAXUD(most[1], most[0], most[0])
	y, x := YMM(), XMM()
	if wide {
		VEXTRACTI32X8(Imm(1), most[0], y)
		VPMAXUD(y, most[0].AsY(), most[0].AsY())
	}
	VEXTRACTI128(Imm(1), most[0].AsY(), x)
	VPMAXUD(x, most[0].AsX(), x)
	for _, order := range []uint64{0x4e, 0xb1} {
		other := XMM()
		VPSHUFD(Imm(order), x, other)
		VPMAXUD(other, x, x)
	}
	out := GP32()
	VMOVD(x, out)
	VZEROUPPER()
	Store(out, ReturnIndex(0))
	RET()
}

// codesAVX512 writes the rounding of a row to bytes without a sign.
func codesAVX512() {
	TEXT("gemmCodesAVX512", NOSPLIT, "func(dst *byte, src *float32, n int, factor float32)")
	Pragma("noescape")
	Doc("gemmCodesAVX512 sets n values of dst to those of src times factor, to the nearest and ties to even, plus 128.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor, offset := broadcast("factor", ZMM()), constant(128, ZMM())
	eachAVX512(n, func(mask reg.Register) {
		x := ZMM()
		if mask == nil {
			VMULPS(Mem{Base: src}, factor, x)
		} else {
			VMULPS_Z(Mem{Base: src}, factor, mask, x)
		}
		VCVTPS2DQ(x, x)
		VPADDD(offset, x, x)
		if mask == nil {
			VPMOVDB(x, Mem{Base: dst})
		} else {
			VPMOVDB(x, mask, Mem{Base: dst})
		}
	}, func() {
		ADDQ(Imm(64), src)
		ADDQ(Imm(16), dst)
	})
}

// codesAVX2 writes the rounding of a row to 16 bits.
func codesAVX2() {
	TEXT("gemmCodesAVX2", NOSPLIT, "func(dst *int16, src *float32, n int, factor float32)")
	Pragma("noescape")
	Doc("gemmCodesAVX2 sets n values of dst, a multiple of 16, to those of src times factor, to the nearest and ties to even.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor := broadcast("factor", YMM())
	Label("whole")
	x := [2]reg.VecVirtual{YMM(), YMM()}
	for i := range x {
		VMULPS(Mem{Base: src, Disp: 32 * i}, factor, x[i])
		VCVTPS2DQ(x[i], x[i])
	}
	VPACKSSDW(x[1], x[0], x[0])
	VPERMQ(Imm(0xd8), x[0], x[0]) // the halves of 128 bits were packed apart
	VMOVDQU(x[0], Mem{Base: dst})
	ADDQ(Imm(64), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("whole"))
	VZEROUPPER()
	RET()
}

// broadcast returns a register with an argument in each lane.
func broadcast(param string, r reg.VecVirtual) reg.VecVirtual {
	p, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(p.Addr, r)
	return r
}
