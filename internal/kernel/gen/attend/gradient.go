package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gradient writes the pass of the backward direction. P is made of the scores and of
// log sum exp, and dS = P * (dP - sum dP*P) of it and of dP, whose sum is complete only
// when all keys are through: dP*P takes the place of dP, and P that of the scores.
func gradient() {
	p := beginPanel("attendGradient",
		"sets rows of P to exp(s - lse), times scale where a bit is one and 0 elsewhere, and grads, rows of dS and\nwords of dS, two keys each, to P*dP - exp(s - lse) * sum P*dP; all but grads are of bfloat16, and the statistics hold lse.")
	e, next := exponentials()
	take := func() reg.VecPhysical { next--; return zmm[next] }
	order, shift, sum, other, scale := take(), take(), take(), take(), take()
	x, room, both := []reg.VecPhysical{zmm[0], zmm[1]}, zmm[2:6], zmm[6]
	VMOVDQU64(interleave(), order)
	VBROADCASTSS(Mem{Base: p.t, Disp: offScale}, scale)
	row, row2, wordRow := field(p.t, offPRow), GP64(), field(p.t, offPairsRow)
	LEAQ(Mem{Base: row, Index: row, Scale: 1}, row2)
	p.each(func() {
		stats := p.at(offStats)
		VMULPS(Mem{Base: stats}, e.log2E, shift)
		VPXORD(sum, sum, sum)
		VPXORD(other, other, other)
		plain, done := p.label("plain"), p.label("summed")
		pass := func(d *dropout) {
			s, g, to := p.at(offScores), p.at(offGrads), p.halvesAt(offP)
			probabilities := func(n int) {
				if d != nil {
					d.next()
				}
				for i := range n {
					VMOVUPS(Mem{Base: s, Disp: i * panelRow}, x[i])
				}
				e.exp(x[:n], room, shift)
				sums := []reg.VecPhysical{sum, other}
				for i := range n {
					VMOVUPS(x[i], Mem{Base: s, Disp: i * panelRow})
					if d != nil {
						VMULPS_Z(scale, x[i], d.mask(), x[i])
					}
					VMULPS(Mem{Base: g, Disp: i * panelRow}, x[i], room[i])
					VMOVUPS(room[i], Mem{Base: g, Disp: i * panelRow})
					VADDPS(room[i], sums[i], sums[i])
				}
			}
			p.down(func() {
				probabilities(2)
				round(x[0], x[1], both)
				second := GP64()
				LEAQ(Mem{Base: to, Index: row, Scale: 1}, second)
				storeRows(both, to, second)
				ADDQ(U32(2*panelRow), s)
				ADDQ(U32(2*panelRow), g)
				ADDQ(row2, to)
			}, func() {
				probabilities(1)
				round(x[0], x[0], both)
				VMOVDQU(both.AsY(), Mem{Base: to})
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
		s, g, to, words := p.at(offScores), p.at(offGrads), p.halvesAt(offDS), p.at(offPairs)
		subtract := func(n int) {
			for i := range n {
				VMOVUPS(Mem{Base: g, Disp: i * panelRow}, x[i])
				VFNMADD231PS(Mem{Base: s, Disp: i * panelRow}, sum, x[i])
				VMOVUPS(x[i], Mem{Base: g, Disp: i * panelRow})
			}
		}
		p.down(func() {
			subtract(2)
			round(x[0], x[1], both)
			second := GP64()
			LEAQ(Mem{Base: to, Index: row, Scale: 1}, second)
			storeRows(both, to, second)
			pairWords(both, order)
			VMOVDQU64(both, Mem{Base: words})
			ADDQ(U32(2*panelRow), s)
			ADDQ(U32(2*panelRow), g)
			ADDQ(row2, to)
			ADDQ(wordRow, words)
		}, func() {
			subtract(1)
			VPXORD(x[1], x[1], x[1])
			round(x[0], x[1], both)
			VMOVDQU(both.AsY(), Mem{Base: to})
			pairWords(both, order)
			VMOVDQU64(both, Mem{Base: words})
		})
	})
}
