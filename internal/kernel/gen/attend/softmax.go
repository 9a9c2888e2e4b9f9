package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmax writes the pass of the forward direction.
func softmax() {
	p := beginPanel("attendSoftmax",
		"sets words of P, two keys each, to exp(s - max s) as bfloat16, or to 0 where a bit is zero,\nand writes log sum exp s and scale / sum exp(s - max s) of each query to the statistics.")
	e, next := exponentials()
	take := func() reg.VecPhysical { next--; return zmm[next] }
	order, shift, sum, other, top := take(), take(), take(), take(), take()
	x, room := []reg.VecPhysical{zmm[0], zmm[1]}, zmm[2:6]
	both := zmm[6]
	VMOVDQU64(interleave(), order)
	row := field(p.t, offPRow)
	p.each(func() {
		s := p.at(offScores)
		VMOVUPS(Mem{Base: s}, top)
		VMOVAPS(top, other)
		p.down(func() {
			VMAXPS(Mem{Base: s}, top, top)
			VMAXPS(Mem{Base: s, Disp: panelRow}, other, other)
			ADDQ(U32(2*panelRow), s)
		}, func() { VMAXPS(Mem{Base: s}, top, top) })
		VMAXPS(other, top, top)
		VMULPS(e.log2E, top, shift)
		VPXORD(sum, sum, sum)
		VPXORD(other, other, other)
		plain, done := p.label("plain"), p.label("summed")
		pass := func(d *dropout) {
			s, to := p.at(offScores), p.at(offP)
			keep := func(x reg.VecPhysical) {
				if d != nil {
					VMOVAPS_Z(x, d.mask(), x)
				}
			}
			begin := func() {
				if d != nil {
					d.next()
				}
			}
			store := func() {
				round(x[0], x[1], both)
				pairWords(both, order)
				VMOVDQU64(both, Mem{Base: to})
			}
			p.down(func() {
				begin()
				VMOVUPS(Mem{Base: s}, x[0])
				VMOVUPS(Mem{Base: s, Disp: panelRow}, x[1])
				e.exp(x, room, shift)
				VADDPS(x[0], sum, sum)
				VADDPS(x[1], other, other)
				keep(x[0])
				keep(x[1])
				store()
				ADDQ(U32(2*panelRow), s)
				ADDQ(row, to)
			}, func() {
				begin()
				VMOVUPS(Mem{Base: s}, x[0])
				e.exp(x[:1], room, shift)
				VADDPS(x[0], sum, sum)
				keep(x[0])
				VPXORD(x[1], x[1], x[1])
				store()
			})
		}
		bits := field(p.t, offBits)
		TESTQ(bits, bits)
		JZ(LabelRef(plain))
		pass(p.dropout(take(), take(), take()))
		JMP(LabelRef(done))
		Label(plain)
		pass(nil)
		Label(done)
		VADDPS(other, sum, sum)
		stats := p.at(offStats)
		factor := zmm[0]
		VBROADCASTSS(Mem{Base: p.t, Disp: offScale}, factor)
		VDIVPS(sum, factor, factor)
		VMOVUPS(factor, Mem{Base: stats, Disp: factors})
		// log sum = ln 2 (exponent + log2(mantissa)).
		exponent, r, log, c := zmm[1], zmm[2], zmm[3], zmm[4]
		VGETEXPPS(sum, exponent)
		VGETMANTPS(Imm(fromOne), sum, r)
		number(1, c)
		VSUBPS(c, r, r)
		number(log2[len(log2)-1], log)
		for i := len(log2) - 2; i >= 0; i-- {
			number(log2[i], c)
			VFMADD213PS(c, r, log)
		}
		VFMADD213PS(exponent, r, log)
		number(0.6931471805599453, c)
		VFMADD213PS(top, c, log)
		VMOVUPS(log, Mem{Base: stats})
	})
}
