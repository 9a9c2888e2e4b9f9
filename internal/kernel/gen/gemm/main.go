// Command gemm writes the assembly of the built-in matrix product: for each
// instruction set and each tile height one function that multiplies a few rows
// of A by a panel of B, and a function that packs a transposed panel.
//
// Run it by go generate in internal/kernel.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in tileArgs of gemm_builtin_amd64.go.
const (
	offK       = 0
	offA       = 8
	offARow    = 16
	offAK      = 24
	offB       = 32
	offBK      = 40
	offC       = 48
	offCRow    = 56
	offAlpha   = 64
	offAdd     = 68
	offMask    = 72
	rowsAVX512 = 14 // 14 x 2 sums + 2 of B + 1 of A = 31 of 32 registers
	rowsAVX2   = 6  // 6 x 2 sums + 2 of B + 1 of A = 15 of 16 registers
	columns    = 2
	floatSize  = 4
)

func main() {
	for r := 1; r <= rowsAVX512; r++ {
		for c := 1; c <= columns; c++ {
			tile(r, c, true)
		}
	}
	for r := 1; r <= rowsAVX2; r++ {
		for c := 1; c <= columns; c++ {
			tile(r, c, false)
		}
	}
	pack8()
	Generate()
}

// tile writes a function that sets a tile of rows x cols vectors of C to
// alpha*A*B, or adds it. With AVX-512 the mask keeps it off columns that are not
// there; without, the tile must be whole.
func tile(rows, cols int, wide bool) {
	set, vector := "AVX2", func() reg.VecVirtual { return YMM() }
	lanes := 8
	if wide {
		set, vector, lanes = "AVX512", func() reg.VecVirtual { return ZMM() }, 16
	}
	TEXT(fmt.Sprintf("gemmTile%sRows%dCols%d", set, rows, cols), NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("gemmTile%sRows%dCols%d multiplies %d rows of A by %d columns of B; t points to a tileArgs.", set, rows, cols, rows, cols*lanes))
	t := Load(Param("t"), GP64())
	field := func(off int) Mem { return Mem{Base: t, Disp: off} }
	get := func(off int) reg.GPVirtual { r := GP64(); MOVQ(field(off), r); return r }

	k, b, bk, ak, ar := get(offK), get(offB), get(offBK), get(offAK), get(offARow)
	var masks []reg.OpmaskVirtual
	if wide {
		masks = loadMasks(get(offMask), cols)
	}
	// Row i is at base i/4 plus 0, 1, 2 or 3 strides.
	ar3 := GP64()
	LEAQ(Mem{Base: ar, Index: ar, Scale: 2}, ar3)
	bases := []reg.GPVirtual{get(offA)}
	for i := 4; i < rows; i += 4 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: ar, Scale: 4}, next)
		bases = append(bases, next)
	}
	rowMem := func(bases []reg.GPVirtual, stride, stride3 reg.GPVirtual, i int) Mem {
		m := Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = stride3, 1
		}
		return m
	}

	sums := make([]reg.VecVirtual, rows*cols)
	for i := range sums {
		sums[i] = vector()
		// Not VXORPS, which has a 512-bit form in AVX-512 DQ only.
		if wide {
			VPXORD(sums[i], sums[i], sums[i])
		} else {
			VXORPS(sums[i], sums[i], sums[i])
		}
	}
	bv := make([]reg.VecVirtual, cols)
	for j := range bv {
		bv[j] = vector()
	}
	av := vector()
	loop := fmt.Sprintf("loop%s%dx%d", set, rows, cols)
	Label(loop)
	for j := range bv {
		m := Mem{Base: b, Disp: j * lanes * floatSize}
		if wide {
			VMOVUPS_Z(m, masks[j], bv[j])
		} else {
			VMOVUPS(m, bv[j])
		}
	}
	for i := range rows {
		VBROADCASTSS(rowMem(bases, ar, ar3, i), av)
		for j := range bv {
			VFMADD231PS(bv[j], av, sums[i*cols+j])
		}
	}
	for _, base := range bases {
		ADDQ(ak, base)
	}
	ADDQ(bk, b)
	DECQ(k)
	JNZ(LabelRef(loop))

	c, cr := get(offC), get(offCRow)
	alpha := av
	VBROADCASTSS(field(offAlpha), alpha)
	add := fmt.Sprintf("add%s%dx%d", set, rows, cols)
	CMPL(field(offAdd), Imm(0))
	JNE(LabelRef(add))
	store := func(adding bool) {
		for i := range rows {
			for j := range cols {
				m, s := Mem{Base: c, Disp: j * lanes * floatSize}, sums[i*cols+j]
				switch {
				case wide && adding:
					VMOVUPS_Z(m, masks[j], bv[j])
					VFMADD231PS(alpha, s, bv[j])
					VMOVUPS(bv[j], masks[j], m)
				case wide:
					VMULPS(alpha, s, s)
					VMOVUPS(s, masks[j], m)
				case adding:
					VFMADD213PS(m, alpha, s)
					VMOVUPS(s, m)
				default:
					VMULPS(alpha, s, s)
					VMOVUPS(s, m)
				}
			}
			if i+1 < rows {
				ADDQ(cr, c)
			}
		}
		VZEROUPPER()
		RET()
	}
	store(false)
	Label(add)
	store(true)
}

// loadMasks splits the 32 bits of mask into one mask register a vector.
func loadMasks(mask reg.GPVirtual, cols int) []reg.OpmaskVirtual {
	out := make([]reg.OpmaskVirtual, cols)
	for j := range out {
		out[j] = K()
		if j > 0 {
			SHRQ(Imm(16), mask)
		}
		KMOVW(mask.As32(), out[j])
	}
	return out
}

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
