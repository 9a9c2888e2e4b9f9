package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// sigmoidEnd bounds the x of which a sigmoid is taken: beyond it the sigmoid is 0 or 1 in
// float32 for every activation of the family.
const sigmoidEnd = 104

// gateEnd bounds the exponent in the gradient, so that 1 + exp is finite.
const gateEnd = 88

// cubic returns x clamped to [-104, 104] and -x (a + b x^2) of it.
func (b *body) cubic(x, factor, cube reg.VecVirtual) (clamped, z reg.VecVirtual) {
	clamped, z = b.vec(), b.vec()
	VMAXPS(x, b.register(expMin), clamped) // x is the second source, which a NaN comes out of
	VMINPS(clamped, b.register(sigmoidEnd), clamped)
	VMULPS(clamped, clamped, z)
	VFNMSUB213PS(factor, cube, z) // -(b x^2) - a
	VMULPS(clamped, z, z)
	return clamped, z
}

// sigmoidUnits writes x / (1 + exp(-x (a + b x^2))), which is SiLU and the two
// approximations of GELU, and its gradient.
func sigmoidUnits() {
	kernel("sigmoidUnitVec", "func(dst, x *float32, n int, a, b float32)", "sets dst = x / (1 + exp(-x (a + b x^2))).",
		func(b *body) {
			dst, xp, factor, cube := pointer("dst"), pointer("x"), b.scalar("a"), b.scalar("b")
			b.expConstants(true)
			b.constants(sigmoidEnd)
			b.each(pointer("n"), 1, func(s step) {
				x := s.load(xp)
				_, z := b.cubic(x, factor, cube)
				e := b.exp(z, true)
				VADDPS(b.c(1), e, e)
				VDIVPS(e, x, x)
				s.store(x, dst)
			})
			b.done()
		})
	// With s = 1/(1+e) and s' = e s^2: s + x (a + 3 b x^2) e s^2.
	kernel("sigmoidUnitGradVec", "func(dst, x, dy *float32, n int, a, b, slope float32)",
		"sets dst = dy (s + x (a + slope x^2) s (1-s)) with s = 1 / (1 + exp(-x (a + b x^2))).", func(b *body) {
			dst, xp, dyp := pointer("dst"), pointer("x"), pointer("dy")
			factor, cube, slope := b.scalar("a"), b.scalar("b"), b.scalar("slope")
			b.expConstants(true)
			b.constants(sigmoidEnd, gateEnd)
			b.each(pointer("n"), 1, func(s step) {
				x, z := b.cubic(s.load(xp), factor, cube)
				VMAXPS(z, b.register(expMin), z)
				VMINPS(z, b.register(gateEnd), z)
				e := b.exp(z, false)
				gate := b.vec()
				VADDPS(b.c(1), e, gate)
				one := b.copy(b.c(1))
				VDIVPS(gate, one, gate) // s
				VMULPS(gate, e, e)
				VMULPS(gate, e, e) // s (1-s)
				t := b.vec()
				VMULPS(x, x, t)
				VFMADD213PS(factor, slope, t) // a + slope x^2
				VMULPS(x, t, t)
				VFMADD231PS(e, t, gate)
				VMULPS(s.load(dyp), gate, gate)
				s.store(gate, dst)
			})
			b.done()
		})
}
