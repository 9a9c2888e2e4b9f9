package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// asin(s) = s + s z (c0 + c1 z + ...) for z = s^2 <= 1/4: a minimax fit of relative
// error 5e-9 by experiments/fit_vector.py, coefficients from the highest power down.
var asinP = []float32{0.042166344821453094, 0.024179495871067047, 0.045470379292964935, 0.07495297491550446,
	0.16666752099990845}

// pi in two parts, whose sum is exact to 48 bits.
const (
	piHi = float32(math.Pi)
	piLo = float32(math.Pi - float64(piHi))
)

// acos writes the arc cosine and its gradient.
func acos() {
	kernel("acosVec", "func(dst, x *float32, n int, limit float32)",
		"sets dst = acos(x), x limited to [-limit, limit].", func(b *body) {
			dst, xp, limit := pointer("dst"), pointer("x"), b.scalar("limit")
			b.bits(withoutSign, signBit)
			b.constants(0.5, 1, 2, -1, piHi, piLo, piHi/2, piLo/2)
			b.constants(asinP...)
			b.each(pointer("n"), 1, func(s step) { s.store(b.acos(s.load(xp), limit), dst) })
			b.done()
		})
	kernel("acosGradVec", "func(dst, x, dy *float32, n int, limit float32)",
		"sets dst = -dy/sqrt(1-x^2), 0 where |x| > limit.", func(b *body) {
			dst, xp, dyp, limit := pointer("dst"), pointer("x"), pointer("dy"), b.scalar("limit")
			b.bits(withoutSign, signBit)
			b.constants(1)
			b.each(pointer("n"), 1, func(s step) {
				x := s.load(xp)
				a := b.vec()
				VANDPS(b.cbits(withoutSign), x, a)
				t := b.copy(b.register(1))
				VFNMADD231PS(x, x, t)
				VSQRTPS(t, t)
				dy := s.load(dyp)
				VXORPS(b.cbits(signBit), dy, dy)
				VDIVPS(t, dy, dy)
				// Everything but a > limit, so that a NaN passes.
				if b.wide {
					inside := K()
					VCMPPS(Imm(26), limit, a, inside)
					VMOVUPS_Z(dy, inside, dy)
				} else {
					VCMPPS(Imm(26), limit, a, a)
					VANDPS(a, dy, dy)
				}
				s.store(dy, dst)
			})
			b.done()
		})
}

// acos returns acos(x) and changes x. With a = |x|, it is pi/2 - asin(x) for a <= 1/2
// and 2 asin(sqrt((1-a)/2)), or pi minus that for negative x, beyond.
func (b *body) acos(x reg.VecVirtual, limit Op) reg.VecVirtual {
	a, z, negative := b.vec(), b.vec(), b.vec()
	VANDPS(b.cbits(withoutSign), x, a)
	VMINPS(a, limit, a) // a NaN comes out of the second source
	VANDPS(b.cbits(signBit), x, negative)
	VORPS(negative, a, x) // limited
	VSUBPS(a, b.register(1), z)
	VMULPS(b.c(0.5), z, z)
	root, square := b.vec(), b.vec()
	VSQRTPS(z, root)
	VMULPS(x, x, square)
	// factor and offset such that the result is factor*asin + offset.
	factor, high, low := b.vec(), b.vec(), b.vec()
	VORPS(b.c(2), negative, factor) // 2 or -2
	VPSRAD(Imm(31), negative, negative)
	VANDPS(b.c(piHi), negative, high)
	VANDPS(b.c(piLo), negative, low)
	if b.wide {
		small := K()
		VCMPPS(Imm(26), b.c(0.5), a, small)
		VMOVUPS(x, small, root)
		VMOVUPS(square, small, z)
		VMOVUPS(b.c(-1), small, factor)
		VMOVUPS(b.c(piHi/2), small, high)
		VMOVUPS(b.c(piLo/2), small, low)
	} else {
		small := a
		VCMPPS(Imm(26), b.c(0.5), a, small)
		VBLENDVPS(small, x, root, root)
		VBLENDVPS(small, square, z, z)
		VBLENDVPS(small, b.c(-1), factor, factor)
		VBLENDVPS(small, b.c(piHi/2), high, high)
		VBLENDVPS(small, b.c(piLo/2), low, low)
	}
	p := b.horner(z, asinP...)
	VMULPS(z, p, p)
	VFMADD213PS(root, root, p) // asin
	VFMADD213PS(low, factor, p)
	VADDPS(high, p, p)
	return p
}
