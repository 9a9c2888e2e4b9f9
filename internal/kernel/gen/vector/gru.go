package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// sigmoid returns 1 / (1 + exp(-x)) and changes x.
func (b *body) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	VXORPS(b.cbits(signBit), x, x)
	e, s := b.exp(x, true), b.copy(b.c(1))
	VADDPS(b.c(1), e, e)
	VDIVPS(e, s, s)
	return s
}

// tanh returns tanh(x) = (1-e) / (1+e) with e = exp(-2x) and changes x.
func (b *body) tanh(x reg.VecVirtual) reg.VecVirtual {
	VMULPS(b.c(-2), x, x)
	VMAXPS(x, b.register(-gateEnd), x) // x is the second source, which a NaN comes out of
	VMINPS(x, b.register(gateEnd), x)
	e, t := b.exp(x, false), b.copy(b.c(1))
	VSUBPS(e, t, t)
	VADDPS(b.c(1), e, e)
	VDIVPS(e, t, t)
	return t
}

// gru writes what follows the products of a step of a gated recurrent unit, and its gradient.
func gru() {
	kernel("gruVec", "func(h, new, reset, update, gate *float32, n int)",
		"sets reset and update to their sigmoids, new = tanh(new + reset*gate) and h = new + update*(h - new).",
		func(b *body) {
			h, newp, reset, update, gate := pointer("h"), pointer("new"), pointer("reset"), pointer("update"),
				pointer("gate")
			b.expConstants(true)
			b.bits(signBit)
			b.constants(-2, gateEnd, -gateEnd)
			b.each(pointer("n"), 1, func(s step) {
				r := b.sigmoid(s.load(reset))
				s.store(r, reset)
				x := s.load(newp)
				VFMADD231PS(s.load(gate), r, x)
				c := b.tanh(x)
				s.store(c, newp)
				z := b.sigmoid(s.load(update))
				s.store(z, update)
				v := s.load(h)
				VSUBPS(c, v, v)
				VFMADD213PS(c, z, v)
				s.store(v, h)
			})
			b.done()
		})
	kernel("gruGradVec", "func(dh, new, reset, update, gate, dy, before *float32, n int)",
		"adds dy to dh, replaces new, reset, update and gate by the gradients of what they came from, and sets dh to its part through update.", func(b *body) {
			dhp, newp, reset, update, gate := pointer("dh"), pointer("new"), pointer("reset"), pointer("update"),
				pointer("gate")
			dy, before := pointer("dy"), pointer("before")
			b.constants(1)
			b.each(pointer("n"), 1, func(s step) {
				dh, c, z := s.load(dhp), s.load(newp), s.load(update)
				VADDPS(s.load(dy), dh, dh)
				keep := b.copy(b.c(1))
				VSUBPS(z, keep, keep) // 1 - z
				dz := s.load(before)
				VSUBPS(c, dz, dz)
				through := b.vec()
				VMULPS(z, dh, through)
				s.store(through, dhp)
				VMULPS(through, dz, dz)
				VMULPS(keep, dz, dz)
				s.store(dz, update)
				VMULPS(keep, dh, dh)
				slope := b.copy(b.c(1))
				VFNMADD231PS(c, c, slope) // 1 - new^2
				VMULPS(slope, dh, dh)
				s.store(dh, newp)
				r, dr := s.load(reset), s.load(gate)
				VMULPS(dh, dr, dr)
				VMULPS(r, dh, dh)
				s.store(dh, gate)
				VMULPS(r, dr, dr)
				VFNMADD213PS(dr, dr, r) // dr - r*dr
				s.store(r, reset)
			})
			b.done()
		})
}
