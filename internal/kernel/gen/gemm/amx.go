package main

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/gen/amx"
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in amxArgs of ../../gemm/amx_args_amd64.go.
const (
	amxConfig    = 0
	amxA         = 8
	amxARow      = 16
	amxATile     = 24
	amxAStep     = 32
	amxAPanel    = 40
	amxSteps     = 48
	amxB         = 56
	amxBRow      = 64
	amxBTile     = 72
	amxBStep     = 80
	amxBPanel    = 88
	amxSums      = 96
	amxRow       = 104
	amxAdd       = 112
	amxPanels    = 120
	amxStep      = 128
	amxEnd       = 136
	amxOut       = 144
	amxOutRow    = 152
	amxOutStep   = 160
	amxCount     = 168
	amxBias      = 176
	amxMask      = 184
	amxAlpha     = 192
	amxActivated = 200
	amxNow       = 208
)

// What is made of the sums of a panel, in amxEnd: nothing, float32 that are set or added to, or bfloat16. (GELU has a
// function of its own.)
const (
	endSums = iota
	endSet
	endAdd
	endHalves
)

const (
	amxTile = 1024 // bytes of a tile
	amxLine = 64   // bytes of one of its rows
)

// amxAhead is how many rows of the results of the next panel a step asks for, which are written otherwise before they
// are in a cache (results that lie in no cache: products of 1040 x 1536 x 384 gain half).
const amxAhead = 3

// Tiles by number: four of sums, two of A and two of B, which are all there are.
const (
	tileA = 4
	tileB = 6
)

// amxProduct writes a function that sets rows x columns tiles of sums, panel after panel, to products along all steps,
// or adds them. All registers are physical, since the bytes of instructions on tiles have their numbers.
//
// The tiles of B are read with the hint that they are not read again: they come from the level-2 cache, and leave the
// first level to the tiles of A, which is worth 15 to 20 %. Loads before products are worth 5 % beside loads between
// them, and asking for tiles of B ahead costs 5 % (Granite Rapids, in a loop of these instructions alone). What is made
// of the sums is computed while the tiles of the next panel are on their way.
func amxProduct(rows, columns int) {
	name := fmt.Sprintf("amxProduct%dx%d", rows, columns)
	TEXT(name, NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s multiplies %d tiles of rows by panels of %d tiles of columns; t points to an amxArgs.", name,
		rows, columns))
	t, rowsAt, panel, sums, ahead := reg.R8, reg.R15, reg.R9, reg.R10, reg.R12
	a, b, steps := [2]reg.GPPhysical{reg.RSI, reg.RDI}, [2]reg.GPPhysical{reg.RDX, reg.RBX}, reg.RCX
	aRow, bRow := reg.RAX, reg.R11
	row := steps   // of sums, where no steps are
	second := a[0] // row of tiles of sums
	result, bias := reg.R13, reg.R14
	field := func(offset int, r reg.Register) { MOVQ(Mem{Base: t, Disp: offset}, r) }
	eachSum := func(do func(tile int, m amx.Rows)) {
		field(amxRow, row)
		MOVQ(row, second)
		SHLQ(Imm(4), second)
		ADDQ(sums, second)
		for i := range rows {
			for j := range columns {
				do(2*i+j, amx.Rows{Base: [2]reg.GPPhysical{sums, second}[i], Stride: row, Disp: amxLine * j})
			}
		}
	}
	Load(Param("t"), t)
	field(amxConfig, a[0])
	amx.LDTILECFG(a[0])
	field(amxB, panel)
	field(amxSums, sums)
	field(amxOut, result)
	field(amxBias, bias)
	field(amxA, rowsAt)
	field(amxARow, aRow)
	field(amxBRow, bRow)
	Label("panel")
	CMPQ(Mem{Base: t, Disp: amxAdd}, Imm(0))
	JNE(LabelRef("add"))
	for i := range rows {
		for j := range columns {
			amx.TILEZERO(2*i + j)
		}
	}
	JMP(LabelRef("begin"))
	Label("add")
	eachSum(func(tile int, m amx.Rows) { amx.TILELOADD(m, tile) })
	Label("begin")
	MOVQ(rowsAt, a[0])
	MOVQ(panel, b[0])
	if rows > 1 {
		field(amxATile, a[1])
		ADDQ(a[0], a[1])
	}
	if columns > 1 {
		field(amxBTile, b[1])
		ADDQ(b[0], b[1])
	}
	field(amxSteps, steps)
	MOVQ(result, ahead)
	ADDQ(Mem{Base: t, Disp: amxOutStep}, ahead)
	Label("step")
	amxMultiply(t, a[:rows], b[:columns], aRow, bRow)
	ask := func(lines int) {
		for range amxAhead {
			for i := range lines {
				PREFETCHT0(Mem{Base: ahead, Disp: amxLine * i})
			}
			ADDQ(Mem{Base: t, Disp: amxOutRow}, ahead)
		}
	}
	CMPQ(Mem{Base: t, Disp: amxEnd}, Imm(endHalves))
	JE(LabelRef("narrow"))
	ask(columns)
	JMP(LabelRef("asked"))
	Label("narrow")
	ask(1)
	Label("asked")
	DECQ(steps)
	JNZ(LabelRef("step"))
	eachSum(func(tile int, m amx.Rows) { amx.TILESTORED(tile, m) })
	amxFinish(t, sums, result, bias, a[0], a[1], b[0], steps, columns)
	ADDQ(Mem{Base: t, Disp: amxOutStep}, result)
	ADDQ(Mem{Base: t, Disp: amxAPanel}, rowsAt)
	ADDQ(Mem{Base: t, Disp: amxStep}, sums)
	ADDQ(Mem{Base: t, Disp: amxBPanel}, panel)
	DECQ(Mem{Base: t, Disp: amxPanels})
	JNZ(LabelRef("panel"))
	amx.TILERELEASE()
	VZEROUPPER()
	RET()
}

// amxMultiply writes a step along k: tiles of rows of A at a by tiles of columns of B at b, which it moves on to the
// next step.
func amxMultiply(t reg.GPPhysical, a, b []reg.GPPhysical, aRow, bRow reg.GPPhysical) {
	for j := range b {
		amx.TILELOADDT1(amx.Rows{Base: b[j], Stride: bRow}, tileB+j)
	}
	for i := range a {
		amx.TILELOADD(amx.Rows{Base: a[i], Stride: aRow}, tileA+i)
	}
	for i := range a {
		for j := range b {
			amx.TDPBF16PS(tileB+j, tileA+i, 2*i+j)
		}
		ADDQ(Mem{Base: t, Disp: amxAStep}, a[i])
	}
	for j := range b {
		ADDQ(Mem{Base: t, Disp: amxBStep}, b[j])
	}
}

// amxFinish writes what is made of the sums of a panel at result. The last four registers are to work in.
func amxFinish(t, sums, result, bias, at, out, apart, left reg.GPPhysical, columns int) {
	field := func(offset int, r reg.Register) { MOVQ(Mem{Base: t, Disp: offset}, r) }
	masks := [2]reg.OpmaskPhysical{reg.K1, reg.K2}
	x, y, both, old, alpha := [2]reg.VecPhysical{reg.Z0, reg.Z1}, [2]reg.VecPhysical{reg.Z2, reg.Z3}, reg.Z4, reg.Z5,
		reg.Z6
	CMPQ(Mem{Base: t, Disp: amxEnd}, Imm(endSums))
	JE(LabelRef("ended"))
	field(amxMask, left)
	KMOVD(left.As32(), reg.K3)
	KMOVW(left.As32(), masks[0])
	SHRQ(Imm(16), left)
	KMOVW(left.As32(), masks[1])
	VBROADCASTSS(Mem{Base: t, Disp: amxAlpha}, alpha)
	for j := range columns {
		VPXORD(y[j], y[j], y[j])
	}
	TESTQ(bias, bias)
	JE(LabelRef("biased"))
	for j := range columns {
		VMOVUPS_Z(Mem{Base: bias, Disp: amxLine * j}, masks[j], y[j])
	}
	ADDQ(Imm(uint64(amxLine*columns)), bias)
	Label("biased")
	MOVQ(sums, at)
	MOVQ(result, out)
	field(amxOutRow, apart)
	field(amxCount, left)
	CMPQ(Mem{Base: t, Disp: amxEnd}, Imm(endHalves))
	JE(LabelRef("halves"))
	CMPQ(Mem{Base: t, Disp: amxEnd}, Imm(endAdd))
	JE(LabelRef("adds"))
	each := func(name string, body func()) {
		Label(name)
		for j := range columns {
			VMOVUPS(Mem{Base: at, Disp: amxLine * j}, x[j])
			VFMADD213PS(y[j], alpha, x[j])
		}
		body()
		ADDQ(Mem{Base: t, Disp: amxRow}, at)
		ADDQ(apart, out)
		DECQ(left)
		JNE(LabelRef(name))
	}
	store := func() {
		for j := range columns {
			VMOVUPS(x[j], masks[j], Mem{Base: out, Disp: amxLine * j})
		}
	}
	each("set", store)
	JMP(LabelRef("ended"))
	each("adds", func() {
		for j := range columns {
			VMOVUPS_Z(Mem{Base: out, Disp: amxLine * j}, masks[j], old)
			VADDPS(old, x[j], x[j])
		}
		store()
	})
	JMP(LabelRef("ended"))
	each("halves", func() {
		if columns > 1 {
			evex.VCVTNE2PS2BF16(x[0], x[1], both)
		} else {
			evex.VCVTNEPS2BF16(x[0], both)
		}
		VMOVDQU16(both, reg.K3, Mem{Base: out})
	})
	Label("ended")
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

// amxTranspose writes a function that transposes tiles of 16 x 16 words.
func amxTranspose() {
	TEXT("amxTranspose", NOSPLIT, "func(dst, src *byte, stride, n int)")
	Pragma("noescape")
	Doc("amxTranspose sets each of n >= 1 tiles of 16 x 16 words, which lie one after the other, to the transpose of 16 rows of src, a stride in bytes",
		"apart, from where the next ones follow. dst may be src with a stride of 64.")
	at, src, stride, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("stride"), GP64()),
		Load(Param("n"), GP64())
	x := make([]reg.VecVirtual, 16)
	Label("tile")
	for i := range x {
		x[i] = ZMM()
		VMOVUPS(Mem{Base: src}, x[i])
		ADDQ(stride, src)
	}
	transposeWords(x, func(w int, out reg.VecVirtual) { VMOVUPS(out, Mem{Base: at, Disp: amxLine * w}) })
	ADDQ(U32(amxTile), at)
	DECQ(n)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// amxColumns writes a function that packs columns of bfloat16 into tiles: 32 values of a column become one of the rows
// of a tile.
func amxColumns() {
	TEXT("amxColumns", NOSPLIT, "func(dst, src *byte, stride, tile int)")
	Pragma("noescape")
	Doc("amxColumns sets row j of the tile at dst (j < 16) and row j-16 of that at dst + tile to the 32 values of column j < 32 in 32 rows of src.",
		"The stride and tile are in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, second, from := Load(Param("stride"), GP64()), Load(Param("tile"), GP64()), GP64()
	ADDQ(dst, second)
	// Pairs of rows word by word: the words of quarter q of a vector are of columns 8*q to 8*q+3, or 4 more with half
	// 1.
	for half := range 2 {
		x := make([]reg.VecVirtual, 16)
		MOVQ(src, from)
		for p := range x {
			low, high := ZMM(), ZMM()
			VMOVDQU64(Mem{Base: from}, low)
			VMOVDQU64(Mem{Base: from, Index: stride, Scale: 1}, high)
			LEAQ(Mem{Base: from, Index: stride, Scale: 2}, from)
			x[p] = ZMM()
			if half == 0 {
				VPUNPCKLWD(high, low, x[p])
			} else {
				VPUNPCKHWD(high, low, x[p])
			}
		}
		transposeWords(x, func(w int, out reg.VecVirtual) {
			column := w/4*8 + w%4 + 4*half
			to := dst
			if column >= 16 {
				to = second
			}
			VMOVUPS(out, Mem{Base: to, Disp: amxLine * (column % 16)})
		})
	}
	VZEROUPPER()
	RET()
}

// transposeWords calls store with vector w of the transpose of 16 vectors of 16 words, which it changes.
func transposeWords(x []reg.VecVirtual, store func(w int, out reg.VecVirtual)) {
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
			store(4*q+c, out)
		}
	}
}
