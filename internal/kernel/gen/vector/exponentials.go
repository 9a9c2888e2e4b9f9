package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Constants of exp(x) = 2^n exp(r), n = round(x log2 e), r = x - n ln 2. ln 2 is
// split in two (Cody and Waite 1980, chapter 6) so that the first product and
// difference are exact. The polynomial 1 + r + r^2 (e0 + e1 r + ...) is a minimax
// fit of relative error 3e-9 on |r| <= ln 2 / 2 by experiments/fit_vector.py.
const (
	log2E  = 1.44269504
	ln2Hi  = 0.693359375
	ln2Lo  = -2.12194440e-4
	e0     = 0.4999999403953552
	e1     = 0.1666651964187622
	e2     = 0.04166839271783829
	e3     = 0.008368780836462975
	e4     = 0.0013814467238262296
	expMin = -104 // exp rounds to 0 below -103.98
	expMax = 89   // and overflows above 88.72
)

// expConstants loads what exp uses.
func (b *body) expConstants(clamp bool) {
	b.constants(log2E, ln2Hi, ln2Lo, e4, e3, e2, e1, e0, 1)
	if clamp {
		b.constants(expMin, expMax)
	}
}

// exp returns exp(x) and changes x. Without clamp, x must be a NaN or in
// [-106, 89].
func (b *body) exp(x reg.VecVirtual, clamp bool) reg.VecVirtual {
	if clamp {
		// x is the second source, which a NaN comes out of.
		VMAXPS(x, b.register(expMin), x)
		VMINPS(x, b.register(expMax), x)
	}
	n := b.vec()
	VMULPS(b.c(log2E), x, n)
	if b.wide {
		VRNDSCALEPS(Imm(8), n, n)
	} else {
		VROUNDPS(Imm(8), n, n)
	}
	VFNMADD231PS(b.c(ln2Hi), n, x)
	VFNMADD231PS(b.c(ln2Lo), n, x)
	p := b.horner(x, e4, e3, e2, e1, e0, 1, 1)
	if b.wide {
		VSCALEFPS(n, p, p)
		return p
	}
	// In two factors, since n may be below the exponents of normal numbers.
	half := b.vec()
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, e := range []reg.VecVirtual{half, n} {
		VPSLLD(Imm(23), e, e)
		VPADDD(b.c(1), e, e)
		VMULPS(e, p, p)
	}
	return p
}

// exponentials writes the kernels of the softmax family.
func exponentials() {
	const unroll = 2
	kernel("expVec", "func(dst, x *float32, n int)", "sets dst = exp(x).", func(b *body) {
		dst, x := pointer("dst"), pointer("x")
		b.expConstants(true)
		b.each(pointer("n"), unroll, func(s step) { s.store(b.exp(s.load(x), true), dst) })
		b.done()
	})
	kernel("expSumVec", "func(dst, x *float32, n int, shift float32) float32",
		"sets dst = exp(x - shift) and returns its sum.", func(b *body) {
			dst, x, shift, sums := pointer("dst"), pointer("x"), b.scalar("shift"), b.zeros(unroll)
			b.expConstants(true)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				VSUBPS(shift, v, v)
				v = b.exp(v, true)
				s.store(v, dst)
				s.accumulate(v, sums[s.u])
			})
			b.result(b.fold(sums, VADDPS))
		})
	kernel("sumExpVec", "func(x *float32, n int, shift float32) float32",
		"returns the sum of exp(x - shift).", func(b *body) {
			x, shift, sums := pointer("x"), b.scalar("shift"), b.zeros(unroll)
			b.expConstants(true)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				VSUBPS(shift, v, v)
				s.accumulate(b.exp(v, true), sums[s.u])
			})
			b.result(b.fold(sums, VADDPS))
		})
	kernel("sumExpMaxVec", "func(x *float32, n int, shift float32) (sum, top float32)",
		"returns the sum of exp(x - shift) and the largest x - shift that is no NaN.", func(b *body) {
			x, shift, sums, tops := pointer("x"), b.scalar("shift"), b.zeros(unroll), b.minusInf(unroll)
			b.expConstants(true)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				VSUBPS(shift, v, v)
				s.highest(v, tops[s.u])
				s.accumulate(b.exp(v, true), sums[s.u])
			})
			b.result(b.fold(sums, VADDPS), b.fold(tops, VMAXPS))
		})
	kernel("sumExpDotMaxVec", "func(x, y *float32, n int, shift float32) (sum, dot, top float32)",
		"is sumExpMaxVec that also returns the sum of exp(x - shift) * y.", func(b *body) {
			x, y, shift, tops := pointer("x"), pointer("y"), b.scalar("shift"), b.minusInf(unroll)
			sums, dots := b.zeros(unroll), b.zeros(unroll)
			b.expConstants(true)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				VSUBPS(shift, v, v)
				s.highest(v, tops[s.u])
				v = b.exp(v, true)
				w := s.load(y)
				VMULPS(v, w, w)
				s.accumulate(v, sums[s.u])
				s.accumulate(w, dots[s.u])
			})
			b.result(b.fold(sums, VADDPS), b.fold(dots, VADDPS), b.fold(tops, VMAXPS))
		})
	kernel("expScaleVec", "func(dst, x *float32, n int, shift, scale float32)",
		"sets dst = scale * exp(x - shift).", func(b *body) {
			dst, x, shift, scale := pointer("dst"), pointer("x"), b.scalar("shift"), b.scalar("scale")
			b.expConstants(true)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				VSUBPS(shift, v, v)
				v = b.exp(v, true)
				VMULPS(scale, v, v)
				s.store(v, dst)
			})
			b.done()
		})
	kernel("expDiffVec", "func(dst, x, y *float32, n int, shiftX, a, shiftY, b float32)",
		"sets dst = a*exp(x - shiftX) - b*exp(y - shiftY).", func(b *body) {
			dst, x, y := pointer("dst"), pointer("x"), pointer("y")
			shiftX, fx, shiftY, fy := b.scalar("shiftX"), b.scalar("a"), b.scalar("shiftY"), b.scalar("b")
			b.expConstants(true)
			b.each(pointer("n"), 1, func(s step) {
				v, w := s.load(x), s.load(y)
				VSUBPS(shiftX, v, v)
				VSUBPS(shiftY, w, w)
				v, w = b.exp(v, true), b.exp(w, true)
				VMULPS(fx, v, v)
				VFNMADD231PS(fy, w, v)
				s.store(v, dst)
			})
			b.done()
		})
}
