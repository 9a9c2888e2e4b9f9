package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack8 writes a function that transposes 8 rows of k8*8 values each into rows
// of 8 values that lie a stride apart.
func pack8() {
	TEXT("gemmPack8", NOSPLIT, "func(dst *float32, dstStride int, src *float32, srcStride int, k8 int)")
	Pragma("noescape")
	Doc("gemmPack8 sets dst[p*dstStride+j] = src[j*srcStride+p] for j < 8 and p < 8*k8; the strides are in bytes.")
	dst := Load(Param("dst"), GP64())
	ds := Load(Param("dstStride"), GP64())
	src := Load(Param("src"), GP64())
	ss := Load(Param("srcStride"), GP64())
	n := Load(Param("k8"), GP64())
	src4, ss3, ds3, dst4 := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ss, Index: ss, Scale: 2}, ss3)
	LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	LEAQ(Mem{Base: src, Index: ss, Scale: 4}, src4)
	at := func(b0, b4, s, s3 reg.Register, i int) Mem {
		m := Mem{Base: b0}
		if i >= 4 {
			m.Base = b4
		}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = s, uint8(i%4)
		case 3:
			m.Index, m.Scale = s3, 1
		}
		return m
	}
	Label("pack")
	LEAQ(Mem{Base: dst, Index: ds, Scale: 4}, dst4)
	// Load the 4-value halves so that rows j and j+4 share a register: then the
	// exchange between the halves is done.
	r := make([]reg.VecVirtual, 8)
	for j := range 4 {
		r[j], r[j+4] = YMM(), YMM()
		lo, hi := at(src, src4, ss, ss3, j), at(src, src4, ss, ss3, j+4)
		VMOVUPS(lo, r[j].AsX())
		VINSERTF128(Imm(1), hi, r[j], r[j])
		lo.Disp, hi.Disp = 16, 16
		VMOVUPS(lo, r[j+4].AsX())
		VINSERTF128(Imm(1), hi, r[j+4], r[j+4])
	}
	for half := range 2 {
		a, b, c, d := r[4*half], r[4*half+1], r[4*half+2], r[4*half+3]
		ab0, ab1, cd0, cd1 := YMM(), YMM(), YMM(), YMM()
		VUNPCKLPS(b, a, ab0) // a0 b0 a1 b1
		VUNPCKHPS(b, a, ab1) // a2 b2 a3 b3
		VUNPCKLPS(d, c, cd0)
		VUNPCKHPS(d, c, cd1)
		for q, pair := range [][2]reg.VecVirtual{{ab0, cd0}, {ab1, cd1}} {
			for h := range 2 {
				out := YMM()
				if h == 0 {
					VUNPCKLPD(pair[1], pair[0], out)
				} else {
					VUNPCKHPD(pair[1], pair[0], out)
				}
				VMOVUPS(out, at(dst, dst4, ds, ds3, 4*half+2*q+h))
			}
		}
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), src4)
	LEAQ(Mem{Base: dst4, Index: ds, Scale: 4}, dst)
	DECQ(n)
	JNZ(LabelRef("pack"))
	VZEROUPPER()
	RET()
}

// prefetch writes a function that asks for memory that is read soon.
func prefetch() {
	TEXT("gemmPrefetch", NOSPLIT, "func(src *byte, stride, lines, rows int)")
	Pragma("noescape")
	Doc("gemmPrefetch asks for lines of 64 bytes from the start of each row; the stride is in",
		"bytes. Addresses that do not exist do no harm.")
	src, stride := Load(Param("src"), GP64()), Load(Param("stride"), GP64())
	lines, rows := Load(Param("lines"), GP64()), Load(Param("rows"), GP64())
	at, n := GP64(), GP64()
	// Rows of two lines are those of a head in bfloat16, which are short beside the loop over lines.
	CMPQ(lines, Imm(2))
	JNE(LabelRef("row"))
	Label("two")
	PREFETCHT1(Mem{Base: src})
	PREFETCHT1(Mem{Base: src, Disp: 64})
	ADDQ(stride, src)
	DECQ(rows)
	JNZ(LabelRef("two"))
	RET()
	Label("row")
	MOVQ(src, at)
	MOVQ(lines, n)
	Label("line")
	PREFETCHT1(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(n)
	JNZ(LabelRef("line"))
	ADDQ(stride, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	RET()
}
