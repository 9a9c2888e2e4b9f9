package main

import (
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes a function that makes columns of a panel of 16 rows.
func transpose() {
	begin("attendTranspose", "func(dst, src *byte, ld, rows, blocks int)",
		"sets, for r < 16 and p < 16*blocks, word r of row p of a panel at dst to word p of row r of src, or to 0\nfor r >= rows; ld is in bytes.")
	dst, src, ld := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("ld"), GP64())
	rows, blocks := Load(Param("rows"), GP64()), Load(Param("blocks"), GP64())
	ld3, src4, src8, src12 := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	LEAQ(Mem{Base: src, Index: ld, Scale: 4}, src4)
	LEAQ(Mem{Base: src4, Index: ld, Scale: 4}, src8)
	LEAQ(Mem{Base: src8, Index: ld, Scale: 4}, src12)
	bases := []reg.Register{src, src4, src8, src12}
	Label("block")
	x, y := zmm[:16], zmm[16:]
	for r := range x {
		VPXORD(x[r], x[r], x[r])
	}
	for r := range x {
		CMPQ(rows, Imm(uint64(r)))
		JLE(LabelRef("loaded"))
		m := Mem{Base: bases[r/4]}
		switch r % 4 {
		case 1, 2:
			m.Index, m.Scale = ld, uint8(r%4)
		case 3:
			m.Index, m.Scale = ld3, 1
		}
		VMOVDQU64(m, x[r])
	}
	Label("loaded")
	// Words of rows r and r+1 side by side, then pairs of words, within quarters of 128 bits.
	for r := 0; r < 16; r += 2 {
		VPUNPCKLDQ(x[r+1], x[r], y[r])
		VPUNPCKHDQ(x[r+1], x[r], y[r+1])
	}
	for r := 0; r < 16; r += 4 {
		VPUNPCKLQDQ(y[r+2], y[r], x[r])
		VPUNPCKHQDQ(y[r+2], y[r], x[r+1])
		VPUNPCKLQDQ(y[r+3], y[r+1], x[r+2])
		VPUNPCKHQDQ(y[r+3], y[r+1], x[r+3])
	}
	// x[4*g+i] has, in quarter q, column 4*q+i of rows 4*g to 4*g+3: exchange quarters with groups.
	for i := range 4 {
		a, b, c, d := x[i], x[4+i], x[8+i], x[12+i]
		VSHUFI32X4(Imm(0x88), b, a, y[4*i])   // quarters 0 and 2 of a, then of b
		VSHUFI32X4(Imm(0xdd), b, a, y[4*i+1]) // 1 and 3
		VSHUFI32X4(Imm(0x88), d, c, y[4*i+2])
		VSHUFI32X4(Imm(0xdd), d, c, y[4*i+3])
		for q, v := range []struct {
			low, high reg.VecPhysical
			order     uint64
		}{{y[4*i], y[4*i+2], 0x88}, {y[4*i+1], y[4*i+3], 0x88}, {y[4*i], y[4*i+2], 0xdd}, {y[4*i+1], y[4*i+3], 0xdd}} {
			VSHUFI32X4(Imm(v.order), v.high, v.low, a)
			VMOVDQU64(a, Mem{Base: dst, Disp: (4*q + i) * panelRow})
		}
	}
	for _, b := range bases {
		ADDQ(Imm(vectorBytes), b)
	}
	ADDQ(U32(lanes*panelRow), dst)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	end()
}

// scale writes the functions that store rows of results.
func scale() {
	for _, half := range []bool{false, true} {
		name, signature, what, size := "attendScale",
			"func(dst *float32, ld int, src *float32, srcLD, rows, n int, factor *float32, factorStep int)",
			"n values of src", 4
		if half {
			name, signature, what, size = "attendScaleHalves",
				"func(dst *uint16, ld int, src *float32, srcLD, rows, n int, factor *float32, factorStep int)",
				"n values of src rounded to bfloat16", 2
		}
		begin(name, signature, "sets rows of dst to "+what+
			" times a factor for each row; ld, srcLD and factorStep are in bytes.")
		dst, ld, src, srcLD := Load(Param("dst"), GP64()), Load(Param("ld"), GP64()), Load(Param("src"), GP64()),
			Load(Param("srcLD"), GP64())
		rows, n, factor, step := Load(Param("rows"), GP64()), Load(Param("n"), GP64()), Load(Param("factor"), GP64()),
			Load(Param("factorStep"), GP64())
		rest, whole, twice, i := GP64(), GP64(), GP64(), GP64()
		MOVQ(n, rest)
		ANDQ(Imm(lanes-1), rest)
		k := firstLanes(rest)
		MOVQ(n, whole)
		SUBQ(rest, whole)
		LEAQ(Mem{Base: whole, Disp: -lanes}, twice)
		f, x, y := zmm[0], zmm[1], zmm[2]
		from, to := Mem{Base: src, Index: i, Scale: 4}, Mem{Base: dst, Index: i, Scale: uint8(size)}
		Label("row")
		VBROADCASTSS(Mem{Base: factor}, f)
		XORQ(i, i)
		if half { // a whole cache line at a time
			next := from
			next.Disp = vectorBytes
			Label("line")
			CMPQ(i, twice)
			JGE(LabelRef("vector"))
			VMULPS(from, f, x)
			VMULPS(next, f, y)
			round(x, y, x)
			VMOVDQU64(x, to)
			ADDQ(Imm(2*lanes), i)
			JMP(LabelRef("line"))
		}
		Label("vector")
		CMPQ(i, whole)
		JGE(LabelRef("rest"))
		VMULPS(from, f, x)
		if half {
			evex.VCVTNEPS2BF16(x, x)
			VMOVDQU(x.AsY(), to)
		} else {
			VMOVUPS(x, to)
		}
		ADDQ(Imm(lanes), i)
		JMP(LabelRef("vector"))
		Label("rest")
		TESTQ(rest, rest)
		JZ(LabelRef("next"))
		VMOVUPS_Z(from, k, x)
		VMULPS(f, x, x)
		if half {
			evex.VCVTNEPS2BF16(x, x)
			VMOVDQU16(x.AsY(), k, to)
		} else {
			VMOVUPS(x, k, to)
		}
		Label("next")
		ADDQ(ld, dst)
		ADDQ(srcLD, src)
		ADDQ(step, factor)
		DECQ(rows)
		JNZ(LabelRef("row"))
		end()
	}
}
