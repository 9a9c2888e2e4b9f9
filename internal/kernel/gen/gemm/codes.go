package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dequantize stores what the sums of codes stand for, in this order, so that all processors round alike:
//
//	C[i][j] = float32(sum - zeros[i]*sums[j]) * scales[j] * rows[i]
//
// A of 16 bits is without its zero. All registers but the sums are free.
func (s set) dequantize(get func(int) reg.GPVirtual, cols int, sums []reg.VecPhysical, free func() reg.VecPhysical,
	masks []reg.OpmaskVirtual) {
	scales, byRow := get(offScales), get(offRows)
	scale, row := free(), free()
	var ofColumns reg.VecPhysical
	var columnSums, zeros reg.GPVirtual
	if s.of == bytes {
		ofColumns, columnSums, zeros = free(), get(offSums), get(offZeros)
	}
	first, stride, c := get(offC), get(offCRow), GP64()
	for j := range cols {
		at, rows := j*s.lanes*floatSize, len(sums)/cols
		VMOVUPS(Mem{Base: scales, Disp: at}, scale)
		if s.of == bytes {
			VMOVDQU32(Mem{Base: columnSums, Disp: at}, ofColumns)
		}
		MOVQ(first, c)
		for i := range rows {
			sum, m := sums[i*cols+j], Mem{Base: c, Disp: at}
			if s.of == bytes {
				VPMULLD_BCST(Mem{Base: zeros, Disp: i * floatSize}, ofColumns, row)
				VPSUBD(row, sum, sum)
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

// span writes the search for the range of a row in the bits of its values: the largest with a sign, from 0 on, are
// those of the largest value, and the largest without a sign those of the least where one is below 0. NaN is beyond
// the infinities.
func span(wide bool) {
	name, lanes, vector := "gemmRangeAVX2", 8, func() reg.VecVirtual { return YMM() }
	if wide {
		name, lanes, vector = "gemmRangeAVX512", 16, func() reg.VecVirtual { return ZMM() }
	}
	TEXT(name, NOSPLIT, "func(src *float32, n int) (most int32, least uint32)")
	Pragma("noescape")
	Doc(name + " is plainRange of n values of src, at least one whole vector of them.")
	src, n := Load(Param("src"), GP64()), Load(Param("n"), GP64())
	most, least := [2]reg.VecVirtual{vector(), vector()}, [2]reg.VecVirtual{vector(), vector()}
	for i := range most {
		VXORPS(most[i].AsY(), most[i].AsY(), most[i].AsY())
		VXORPS(least[i].AsY(), least[i].AsY(), least[i].AsY())
	}
	step := lanes * floatSize
	take := func(at Mem, i int) {
		x := vector()
		VMOVUPS(at, x)
		VPMAXSD(x, most[i], most[i])
		VPMAXUD(x, least[i], least[i])
	}
	Label("two")
	CMPQ(n, Imm(uint64(2*lanes)))
	JL(LabelRef("one"))
	take(Mem{Base: src}, 0)
	take(Mem{Base: src, Disp: step}, 1)
	ADDQ(Imm(uint64(2*step)), src)
	SUBQ(Imm(uint64(2*lanes)), n)
	JMP(LabelRef("two"))
	Label("one")
	CMPQ(n, Imm(uint64(lanes)))
	JL(LabelRef("rest"))
	take(Mem{Base: src}, 0)
	ADDQ(Imm(uint64(step)), src)
	SUBQ(Imm(uint64(lanes)), n)
	Label("rest") // ends with the last value: some are read again
	take(Mem{Base: src, Index: n, Scale: floatSize, Disp: -step}, 1)
	across := func(v [2]reg.VecVirtual, larger func(...Op), result int) {
		larger(v[1], v[0], v[0])
		y, x := YMM(), XMM()
		if wide {
			VEXTRACTI32X8(Imm(1), v[0], y)
			larger(y, v[0].AsY(), v[0].AsY())
		}
		VEXTRACTI128(Imm(1), v[0].AsY(), x)
		larger(v[0].AsX(), x, x)
		for _, order := range []uint64{0x4e, 0xb1} {
			other := XMM()
			VPSHUFD(Imm(order), x, other)
			larger(other, x, x)
		}
		out := GP32()
		VMOVD(x, out)
		Store(out, ReturnIndex(result))
	}
	across(most, VPMAXSD, 0)
	across(least, VPMAXUD, 1)
	VZEROUPPER()
	RET()
}

// codesAVX512 writes the rounding of a row to bytes without a sign.
func codesAVX512() {
	TEXT("gemmCodesAVX512", NOSPLIT, "func(dst *byte, src *float32, n int, factor float32, zero int32)")
	Pragma("noescape")
	Doc("gemmCodesAVX512 sets n values of dst to those of src times factor, to the nearest and ties to even, plus zero,",
		"and to 255 where they are beyond it.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor, zero := broadcast("factor", ZMM()), broadcast("zero", ZMM())
	eachAVX512(n, func(mask reg.Register) {
		x := ZMM()
		if mask == nil {
			VMULPS(Mem{Base: src}, factor, x)
		} else {
			VMULPS_Z(Mem{Base: src}, factor, mask, x)
		}
		VCVTPS2DQ(x, x)
		VPADDD(zero, x, x)
		if mask == nil {
			VPMOVUSDB(x, Mem{Base: dst})
		} else {
			VPMOVUSDB(x, mask, Mem{Base: dst})
		}
	}, func() {
		ADDQ(Imm(64), src)
		ADDQ(Imm(16), dst)
	})
}

// codesAVX2 writes the rounding of a row to 16 bits.
func codesAVX2() {
	TEXT("gemmCodesAVX2", NOSPLIT, "func(dst *int16, src *float32, n int, factor float32, most int32)")
	Pragma("noescape")
	Doc("gemmCodesAVX2 sets n values of dst, a multiple of 16, to those of src times factor, to the nearest and ties to even,",
		"and to most where they are beyond it.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor, most := broadcast("factor", YMM()), broadcast("most", YMM())
	Label("whole")
	x := [2]reg.VecVirtual{YMM(), YMM()}
	for i := range x {
		VMULPS(Mem{Base: src, Disp: 32 * i}, factor, x[i])
		VCVTPS2DQ(x[i], x[i])
		VPMINSD(most, x[i], x[i])
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

// broadcast returns a register with an argument of 32 bits in each lane.
func broadcast(param string, r reg.VecVirtual) reg.VecVirtual {
	p, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(p.Addr, r)
	return r
}
