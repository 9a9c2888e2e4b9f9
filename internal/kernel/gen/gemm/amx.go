package main

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/gen/amx"
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in amxArgs of ../../gemm/amx_amd64.go.
const (
	amxConfig   = 0
	amxA        = 8
	amxATile    = 16
	amxSteps    = 24
	amxB        = 32
	amxBTile    = 40
	amxBPanel   = 48
	amxFrom     = 56
	amxFromRow  = 64
	amxTo       = 72
	amxToRow    = 80
	amxPanels   = 88
	amxTile     = 1024 // bytes of a tile
	amxLine     = 64   // bytes of one of its rows
	amxTileRows = 16
)

// Tiles by number: four of sums, two of A and two of B, which are all there are.
const (
	tileA = 4
	tileB = 6
)

// amxAhead is how many steps before its use a tile of B is asked for, which comes from the level-2 cache.
const amxAhead = 2

// amxProduct writes a function that sets rows x columns tiles of sums, panel after panel, to products along all steps, and adds what was there
// before. All registers are physical, since the bytes of instructions on tiles have their numbers.
func amxProduct(rows, columns int) {
	name := fmt.Sprintf("amxProduct%dx%d", rows, columns)
	TEXT(name, NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s multiplies %d tiles of rows by panels of %d tiles of columns; t points to an amxArgs.", name, rows, columns))
	t, panel, from, to, row, panels := reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13
	a, second, b, third, steps, line := reg.RSI, reg.RDI, reg.RDX, reg.RBX, reg.RCX, reg.RAX
	field := func(offset int, r reg.Register) { MOVQ(Mem{Base: t, Disp: offset}, r) }
	Load(Param("t"), t)
	field(amxConfig, a)
	amx.LDTILECFG(a)
	field(amxB, panel)
	field(amxFrom, from)
	field(amxTo, to)
	field(amxPanels, panels)
	MOVQ(U32(amxLine), line)

	// sums calls do for each tile of sums with its place, where row is the stride and at the first row.
	sums := func(at reg.GPPhysical, do func(tile int, m amx.Rows)) {
		for i := range rows {
			if i > 0 {
				MOVQ(row, a)
				SHLQ(Imm(4), a)
				ADDQ(at, a)
				at = a
			}
			for j := range columns {
				do(2*i+j, amx.Rows{Base: at, Stride: row, Disp: amxLine * j})
			}
		}
	}
	Label("panel")
	TESTQ(from, from)
	JNZ(LabelRef("add"))
	for i := range rows {
		for j := range columns {
			amx.TILEZERO(2*i + j)
		}
	}
	JMP(LabelRef("begin"))
	Label("add")
	field(amxFromRow, row)
	sums(from, func(tile int, m amx.Rows) { amx.TILELOADD(m, tile) })
	ADDQ(Imm(uint64(amxLine*columns)), from)
	Label("begin")
	field(amxA, a)
	if rows > 1 {
		field(amxATile, second)
		ADDQ(a, second)
	}
	MOVQ(panel, b)
	if columns > 1 {
		field(amxBTile, third)
		ADDQ(b, third)
	}
	field(amxSteps, steps)
	Label("step")
	ahead := 0
	prefetch := func(of reg.Register) {
		for range amxTileRows / rows {
			PREFETCHT0(Mem{Base: of, Disp: amxAhead*amxTile + amxLine*(ahead%amxTileRows)})
			ahead++
		}
	}
	multiply := func(i, j int) { amx.TDPBF16PS(tileB+j, tileA+i, 2*i+j) }
	tile := func(of reg.GPPhysical, to int) { amx.TILELOADD(amx.Rows{Base: of, Stride: line}, to) }
	tile(b, tileB)
	tile(a, tileA)
	prefetch(b)
	multiply(0, 0)
	if columns > 1 {
		tile(third, tileB+1)
		multiply(0, 1)
	}
	if rows > 1 {
		prefetch(b)
		tile(second, tileA+1)
		multiply(1, 0)
	}
	if columns > 1 {
		prefetch(third)
		if rows > 1 {
			multiply(1, 1)
			prefetch(third)
		}
	}
	for _, r := range []reg.Register{a, second, b, third} {
		if r == second && rows == 1 || r == third && columns == 1 {
			continue
		}
		ADDQ(U32(amxTile), r)
	}
	DECQ(steps)
	JNZ(LabelRef("step"))
	field(amxToRow, row)
	sums(to, func(tile int, m amx.Rows) { amx.TILESTORED(tile, m) })
	ADDQ(Imm(uint64(amxLine*columns)), to)
	field(amxBPanel, b)
	ADDQ(b, panel)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	amx.TILERELEASE()
	RET()
}

// amxRows writes a function that packs rows into tiles: 32 values of a row become one of the rows of a tile.
func amxRows(from source) {
	name := fmt.Sprintf("amxRows%s", map[source]string{fromFloats: "F32", fromHalves: "BF16"}[from])
	TEXT(name, NOSPLIT, "func(dst, src *byte, stride, rows, steps int, rest uint64)")
	Pragma("noescape")
	Doc(name+" sets row i < rows of tile s < steps, of 1024 bytes each, to values 32*s to 32*s+31 of row i of src as",
		"bfloat16, and where rest is not 0 that of the tile after them to the values whose bits are set in rest, and to 0. The stride is in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, rows := Load(Param("stride"), GP64()), Load(Param("rows"), GP64())
	count, rest := Load(Param("steps"), GP64()), GP64()
	Load(Param("rest"), rest)
	masks := []reg.OpmaskVirtual{K(), K()}
	KMOVD(rest.As32(), masks[0])
	if from == fromFloats {
		upper := GP64()
		MOVQ(rest, upper)
		SHRQ(Imm(16), upper)
		KMOVW(rest.As32(), masks[0])
		KMOVW(upper.As32(), masks[1])
	}
	low, high, both := reg.Z0, reg.Z1, reg.Z2
	d, s, n := GP64(), GP64(), GP64()
	width := 64
	if from == fromFloats {
		width = 128
	}
	Label("row")
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(count, n)
	TESTQ(n, n)
	JE(LabelRef("rest"))
	Label("step")
	if from == fromFloats {
		VMOVUPS(Mem{Base: s}, low)
		VMOVUPS(Mem{Base: s, Disp: 64}, high)
		evex.VCVTNE2PS2BF16(low, high, both)
	} else {
		VMOVDQU64(Mem{Base: s}, both)
	}
	VMOVDQU64(both, Mem{Base: d})
	ADDQ(U32(uint32(width)), s)
	ADDQ(U32(amxTile), d)
	DECQ(n)
	JNZ(LabelRef("step"))
	Label("rest")
	TESTQ(rest, rest)
	JE(LabelRef("next"))
	if from == fromFloats {
		VMOVUPS_Z(Mem{Base: s}, masks[0], low)
		VMOVUPS_Z(Mem{Base: s, Disp: 64}, masks[1], high)
		evex.VCVTNE2PS2BF16(low, high, both)
	} else {
		VMOVDQU16_Z(Mem{Base: s}, masks[0], both)
	}
	VMOVDQU64(both, Mem{Base: d})
	Label("next")
	ADDQ(Imm(amxLine), dst)
	ADDQ(stride, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// amxTranspose writes a function that transposes tiles of 16 x 16 words where they are.
func amxTranspose() {
	TEXT("amxTranspose", NOSPLIT, "func(tiles *byte, n int)")
	Pragma("noescape")
	Doc("amxTranspose transposes each of n >= 1 tiles of 16 x 16 words, which lie one after the other.")
	at, n := Load(Param("tiles"), GP64()), Load(Param("n"), GP64())
	x := make([]reg.VecVirtual, 16)
	Label("tile")
	for i := range x {
		x[i] = ZMM()
		VMOVUPS(Mem{Base: at, Disp: amxLine * i}, x[i])
	}
	// Words, then pairs of words, then quarters of vectors change places.
	y := make([]reg.VecVirtual, 16)
	for i := 0; i < 16; i += 2 {
		y[i], y[i+1] = ZMM(), ZMM()
		VUNPCKLPS(x[i+1], x[i], y[i])
		VUNPCKHPS(x[i+1], x[i], y[i+1])
	}
	for i := 0; i < 16; i += 4 {
		for j := range 2 {
			low, high := ZMM(), ZMM()
			VUNPCKLPD(y[i+j+2], y[i+j], low)
			VUNPCKHPD(y[i+j+2], y[i+j], high)
			x[i+2*j], x[i+2*j+1] = low, high
		}
	}
	// x[4*g+c] has in quarter q the words 4*g to 4*g+3 of column 4*q+c.
	for c := range 4 {
		var h [4]reg.VecVirtual
		for i := range h {
			h[i] = ZMM()
		}
		VSHUFF32X4(Imm(0x88), x[4+c], x[c], h[0]) // quarters 0 and 2 of groups 0 and 1
		VSHUFF32X4(Imm(0xdd), x[4+c], x[c], h[1]) // 1 and 3
		VSHUFF32X4(Imm(0x88), x[12+c], x[8+c], h[2])
		VSHUFF32X4(Imm(0xdd), x[12+c], x[8+c], h[3])
		for q := range 4 {
			out := ZMM()
			order := Imm(0x88)
			if q >= 2 {
				order = Imm(0xdd)
			}
			VSHUFF32X4(order, h[2+q%2], h[q%2], out)
			VMOVUPS(out, Mem{Base: at, Disp: amxLine * (4*q + c)})
		}
	}
	ADDQ(U32(amxTile), at)
	DECQ(n)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}
