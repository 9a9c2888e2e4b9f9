package main

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/gen/amx"
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	"github.com/geoalign/geoalign/internal/kernel/gen/fit"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// geluConstants are the constants of GELU, in registers from 16 on: the bits of a number without its sign, the end of
// the tail, and the fits.
type geluConstants struct {
	unsigned, end reg.VecPhysical
	tail, exp2    []reg.VecPhysical
}

// loadGELU loads the constants.
func loadGELU() geluConstants {
	registers := []reg.VecPhysical{reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24,
		reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}
	words := []uint32{0x7fffffff, math.Float32bits(fit.HalfTailEnd)}
	for _, c := range append(append([]float32{}, fit.HalfLogTail...), fit.HalfExp2...) {
		words = append(words, math.Float32bits(c))
	}
	table := GLOBL("gemmGELU", RODATA|NOPTR)
	for i, w := range words {
		DATA(4*i, U32(w))
		VBROADCASTSS(table.Offset(4*i), registers[i])
	}
	n := 2 + len(fit.HalfLogTail)
	return geluConstants{unsigned: registers[0], end: registers[1], tail: registers[2:n], exp2: registers[n:len(words)]}
}

// gelu sets y[i] to GELU of x[i] by the steps of halfGELU in ../vector, with four registers of room for each.
func (c geluConstants) gelu(y, x []reg.VecPhysical, room [][]reg.VecPhysical) {
	each := func(f func(y, x, a, e, r, p reg.VecPhysical)) {
		for i := range x {
			f(y[i], x[i], room[i][0], room[i][1], room[i][2], room[i][3])
		}
	}
	each(func(_, x, a, _, _, _ reg.VecPhysical) { VPANDD(c.unsigned, x, a) })
	each(func(_, _, a, _, _, _ reg.VecPhysical) { VMINPS(a, c.end, a) })
	each(func(_, _, _, e, _, _ reg.VecPhysical) { VMOVAPS(c.tail[0], e) })
	for _, k := range c.tail[1:] {
		each(func(_, _, a, e, _, _ reg.VecPhysical) { VFMADD213PS(k, a, e) })
	}
	each(func(_, _, _, e, r, p reg.VecPhysical) {
		VREDUCEPS(Imm(fit.RoundDown), e, r)
		VMOVAPS(c.exp2[0], p)
	})
	for _, k := range c.exp2[1:] {
		each(func(_, _, _, _, r, p reg.VecPhysical) { VFMADD213PS(k, r, p) })
	}
	each(func(y, x, a, e, _, p reg.VecPhysical) {
		VSCALEFPS(e, p, p)
		VPXORD(y, y, y)
		VMAXPS(x, y, y)
		VFNMADD231PS(p, a, y)
	})
}

// amxGELURows is how many rows of the panel before are finished at a step.
const amxGELURows = 3

// amxGELU writes amxProduct of two tiles of rows and columns with a bias and GELU behind it, both results rounded. They
// take as long as the products: so they are computed from the sums of one panel between the products of the next one,
// which other units of the processor make at the same time.
func amxGELU() {
	TEXT("amxGELU", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Doc("amxGELU multiplies 2 tiles of rows by panels of 2 tiles of columns; t points to an amxArgs whose now and panels it changes.")
	// Where the panel in progress is: as numbers, since those of the last one end beyond their arrays, where the
	// garbage collector may find no pointer.
	const nowB, nowSums, nowOut, nowBias = amxNow, amxNow + 8, amxNow + 16, amxNow + 24
	t, ahead, at, out := reg.R8, reg.R12, reg.R13, reg.R14
	a, b, steps := [2]reg.GPPhysical{reg.RSI, reg.RDI}, [2]reg.GPPhysical{reg.RDX, reg.RBX}, reg.RCX
	aRow, bRow, apart, activated, left := reg.RAX, reg.R11, reg.R10, reg.R9, reg.R15
	row, sums, second := steps, b[0], a[0] // of sums, where no steps are
	field := func(offset int, r reg.Register) { MOVQ(Mem{Base: t, Disp: offset}, r) }
	eachSum := func(do func(tile int, m amx.Rows)) {
		field(amxRow, row)
		field(nowSums, sums)
		MOVQ(row, second)
		SHLQ(Imm(4), second)
		ADDQ(sums, second)
		for i := range 2 {
			for j := range 2 {
				do(2*i+j, amx.Rows{Base: [2]reg.GPPhysical{sums, second}[i], Stride: row, Disp: amxLine * j})
			}
		}
	}
	Load(Param("t"), t)
	for i, from := range []int{amxB, amxSums, amxOut, amxBias} {
		field(from, steps)
		MOVQ(steps, Mem{Base: t, Disp: amxNow + 8*i})
	}
	field(amxConfig, a[0])
	amx.LDTILECFG(a[0])
	c := loadGELU()
	x, bias, both, y := []reg.VecPhysical{reg.Z0, reg.Z1}, []reg.VecPhysical{reg.Z2, reg.Z3}, reg.Z4,
		[]reg.VecPhysical{reg.Z5, reg.Z6}
	room := [][]reg.VecPhysical{{reg.Z7, reg.Z8, reg.Z9, reg.Z10}, {reg.Z11, reg.Z12, reg.Z13, reg.Z14}}
	finishRow := func() {
		for j := range x {
			VMOVUPS(Mem{Base: at, Disp: amxLine * j}, x[j])
			VADDPS(bias[j], x[j], x[j])
		}
		evex.VCVTNE2PS2BF16(x[0], x[1], both)
		VMOVDQU64(both, Mem{Base: out})
		VEXTRACTI64X4(Imm(1), both, x[1].AsY())
		VPMOVZXWD(both.AsY(), x[0])
		VPMOVZXWD(x[1].AsY(), x[1])
		for j := range x {
			VPSLLD(Imm(16), x[j], x[j])
		}
		c.gelu(y, x, room)
		evex.VCVTNE2PS2BF16(y[0], y[1], both)
		VMOVDQU64(both, Mem{Base: out, Index: activated, Scale: 1})
		ADDQ(Mem{Base: t, Disp: amxRow}, at)
		ADDQ(apart, out)
		DECQ(left)
	}
	finish := func(name string) { // what is left
		TESTQ(left, left)
		JE(LabelRef("finished" + name))
		Label("finish" + name)
		finishRow()
		JNE(LabelRef("finish" + name))
		Label("finished" + name)
	}
	field(amxARow, aRow)
	field(amxBRow, bRow)
	field(amxOutRow, apart)
	field(amxActivated, activated)
	XORQ(left, left)
	Label("panel")
	CMPQ(Mem{Base: t, Disp: amxAdd}, Imm(0))
	JNE(LabelRef("add"))
	for tile := range 4 {
		amx.TILEZERO(tile)
	}
	JMP(LabelRef("begin"))
	Label("add")
	eachSum(func(tile int, m amx.Rows) { amx.TILELOADD(m, tile) })
	Label("begin")
	field(amxA, a[0])
	field(amxATile, a[1])
	ADDQ(a[0], a[1])
	field(nowB, b[0])
	field(amxBTile, b[1])
	ADDQ(b[0], b[1])
	field(amxSteps, steps)
	field(nowOut, ahead)
	Label("step")
	amxMultiply(t, a[:], b[:], aRow, bRow)
	for range amxAhead {
		PREFETCHT0(Mem{Base: ahead})
		PREFETCHT0(Mem{Base: ahead, Index: activated, Scale: 1})
		ADDQ(apart, ahead)
	}
	for range amxGELURows {
		TESTQ(left, left)
		JE(LabelRef("next"))
		finishRow()
	}
	Label("next")
	DECQ(steps)
	JNZ(LabelRef("step"))
	finish("Before")
	eachSum(func(tile int, m amx.Rows) { amx.TILESTORED(tile, m) })
	MOVQ(sums, at)
	field(nowOut, out)
	for j := range bias {
		VPXORD(bias[j], bias[j], bias[j])
	}
	field(nowBias, a[0])
	TESTQ(a[0], a[0])
	JE(LabelRef("biased"))
	for j := range bias {
		VMOVUPS(Mem{Base: a[0], Disp: amxLine * j}, bias[j])
	}
	ADDQ(U32(2*amxLine), Mem{Base: t, Disp: nowBias})
	Label("biased")
	MOVQ(U32(2*amxTile/amxLine), left)
	advance := func(field, by int) {
		MOVQ(Mem{Base: t, Disp: by}, a[0])
		ADDQ(a[0], Mem{Base: t, Disp: field})
	}
	advance(nowOut, amxOutStep)
	advance(nowSums, amxStep)
	advance(nowB, amxBPanel)
	DECQ(Mem{Base: t, Disp: amxPanels})
	JNZ(LabelRef("panel"))
	finish("Last")
	amx.TILERELEASE()
	VZEROUPPER()
	RET()
}
