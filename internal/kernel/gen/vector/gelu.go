package main

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/gen/fit"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The normal tail 1 - Phi(a) = exp(-a^2/2) P(a)/Q(a) for a in [0, 14.5]: P/Q is a
// minimax fit by experiments/fit_vector.py, of relative error 6e-9, 3e-8 with the
// coefficients rounded. All coefficients are positive, so nothing cancels, and
// beyond 14.5 the tail is below the smallest float32.
var (
	tailP = []float32{0.004116308409720659, 0.04063322767615318, 0.18323515355587006, 0.4382949769496918, 0.5}
	tailQ = []float32{0.010317934677004814, 0.10185884684324265, 0.46947067975997925, 1.2025032043457031,
		1.6744749546051025, 1}
)

const (
	tailEnd     = 14.5
	invSqrt2Pi  = 0.3989422804014327
	signBit     = 0x80000000
	withoutSign = 0x7fffffff
)

// normalTail returns a = min(|x|, 14.5), exp(-a^2/2) and 1 - Phi(a).
func (b *body) normalTail(x reg.VecVirtual) (a, e, tail reg.VecVirtual) {
	a = b.vec()
	VANDPS(b.cbits(withoutSign), x, a)
	VMINPS(a, b.register(tailEnd), a)
	t := b.vec()
	VMULPS(a, a, t)
	VMULPS(b.c(-0.5), t, t)
	e = b.exp(t, false)
	p, q := b.horner(a, tailP...), b.horner(a, tailQ...)
	VDIVPS(q, p, p)
	VMULPS(e, p, p)
	return a, e, p
}

// gelu returns x*Phi(x) as max(x, 0) - |x| (1 - Phi(|x|)), which is exact for large
// |x|.
func (b *body) gelu(x reg.VecVirtual) reg.VecVirtual {
	a, _, tail := b.normalTail(x)
	y := b.zero()
	VMAXPS(x, y, y)
	VFNMADD231PS(tail, a, y)
	return y
}

// geluSlope returns Phi(x) + x*phi(x), of which it may change x.
func (b *body) geluSlope(x reg.VecVirtual) reg.VecVirtual {
	a, e, tail := b.normalTail(x)
	phi := b.vec()
	VSUBPS(tail, b.register(1), phi)
	if b.wide {
		negative := K()
		VPMOVD2M(x, negative)
		VMOVUPS(tail, negative, phi)
	} else {
		VBLENDVPS(x, tail, phi, phi)
	}
	VANDPS(b.cbits(signBit), x, x)
	VORPS(a, x, x)
	VMULPS(b.c(invSqrt2Pi), x, x)
	VFMADD231PS(e, x, phi)
	return phi
}

// geluConstants loads what gelu needs, and geluSlope with invSqrt2Pi.
func geluConstants(b *body) {
	b.expConstants(false)
	b.bits(withoutSign, signBit)
	b.constants(tailEnd, -0.5)
	b.constants(tailP...)
	b.constants(tailQ...)
}

// gelu writes x*Phi(x), alone and behind a bias, and its gradient.
func gelu() {
	load := geluConstants
	kernel("geluVec", "func(dst, x *float32, n int)", "sets dst = x * Phi(x).", func(b *body) {
		dst, xp := pointer("dst"), pointer("x")
		load(b)
		b.each(pointer("n"), 1, func(s step) {
			s.store(b.gelu(s.load(xp)), dst)
		})
		b.done()
	})
	kernel("biasGELUVec", "func(x, dst, bias *float32, n int)", "sets x += bias, dst = x * Phi(x).", func(b *body) {
		xp, dst, bias := pointer("x"), pointer("dst"), pointer("bias")
		load(b)
		b.each(pointer("n"), 1, func(s step) {
			x := s.load(xp)
			VADDPS(s.load(bias), x, x)
			s.store(x, xp)
			s.store(b.gelu(x), dst)
		})
		b.done()
	})
	kernel("geluGradVec", "func(dst, x, dy *float32, n int)", "sets dst = dy * (Phi(x) + x*phi(x)).", func(b *body) {
		dst, xp, dyp := pointer("dst"), pointer("x"), pointer("dy")
		load(b)
		b.constants(invSqrt2Pi)
		b.each(pointer("n"), 1, func(s step) {
			phi := b.geluSlope(s.load(xp))
			VMULPS(s.load(dyp), phi, phi)
			s.store(phi, dst)
		})
		b.done()
	})
}

// GELU on bfloat16 takes two thirds of the instructions, and no division: the tail is a power of two whose exponent is
// a polynomial, which has all of its range (package fit).

// halfTail returns a = min(|x|, 12.75) and 1 - Phi(a), for results of bfloat16.
func (b *body) halfTail(x reg.VecVirtual) (a, tail reg.VecVirtual) {
	a, r := b.vec(), b.vec()
	VANDPS(b.cbits(withoutSign), x, a)
	VMINPS(a, b.register(fit.HalfTailEnd), a) // a NaN comes out of the second source
	e := b.horner(a, fit.HalfLogTail...)
	VREDUCEPS(Imm(fit.RoundDown), e, r) // e - floor(e)
	tail = b.horner(r, fit.HalfExp2...)
	VSCALEFPS(e, tail, tail) // times 2^floor(e)
	return a, tail
}

// halfGELU is gelu for a result of bfloat16.
func (b *body) halfGELU(x reg.VecVirtual) reg.VecVirtual {
	a, tail := b.halfTail(x)
	y := b.zero()
	VMAXPS(x, y, y)
	VFNMADD231PS(tail, a, y)
	return y
}

// halfGELUSlope is geluSlope for a result of bfloat16: with h = (1-Phi(a)) (1 - a phi(a)/(1-Phi(a))) it is h of a
// negative x, and 1 - h.
func (b *body) halfGELUSlope(x reg.VecVirtual) reg.VecVirtual {
	a, tail := b.halfTail(x)
	h, y, negative := b.hornerOfMemory(a, fit.HalfMills...), b.vec(), K()
	VMULPS(tail, h, h)
	VSUBPS(h, b.register(1), y)
	VPMOVD2M(x, negative)
	VMOVUPS(h, negative, y)
	return y
}

// hornerOfMemory is horner for more coefficients than there are registers for.
func (b *body) hornerOfMemory(x reg.Register, coefficients ...float32) reg.VecVirtual {
	p := b.vec()
	VBROADCASTSS(memory(math.Float32bits(coefficients[0])), p)
	for _, c := range coefficients[1:] {
		VFMADD213PS_BCST(memory(math.Float32bits(c)), x, p)
	}
	return p
}

// halfGELUConstants loads what halfGELU needs, and halfGELUSlope with 1.
func halfGELUConstants(b *body) {
	b.bits(withoutSign)
	b.constants(fit.HalfTailEnd)
	b.constants(fit.HalfLogTail...)
	b.constants(fit.HalfExp2...)
}
