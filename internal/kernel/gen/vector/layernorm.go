package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// layerNorm writes the passes of layer normalisation and of its gradient.
func layerNorm() {
	kernel("momentsVec", "func(x *float32, n int, shift float32) (s, q float32)",
		"returns the sums of x - shift and of its square.", func(b *body) {
			const unroll = 4
			x, shift := pointer("x"), b.scalar("shift")
			sum, square := b.zeros(unroll), b.zeros(unroll)
			b.constants(1)
			b.each(pointer("n"), unroll, func(s step) {
				v := s.load(x)
				switch {
				case s.mask == nil:
					VSUBPS(shift, v, v)
				case b.wide:
					VSUBPS_Z(shift, v, s.mask, v)
				default:
					VSUBPS(shift, v, v)
					VANDPS(s.mask, v, v)
				}
				VFMADD231PS(b.c(1), v, sum[s.u]) // leaves the adders to the difference
				VFMADD231PS(v, v, square[s.u])
			})
			b.result(b.fold(sum, VADDPS), b.fold(square, VADDPS))
		})
	narrowKernel("sumSqDevVec", "func(x *float32, n int, mean float64) float64", "returns the sum of (x - mean)^2.",
		func(b *body) {
			const unroll = 4
			x, sums := pointer("x"), b.zeros(unroll)
			p, err := Param("mean").Resolve()
			if err != nil {
				panic(err)
			}
			mean := b.vec()
			VBROADCASTSD(p.Addr, mean)
			b.loop(pointer("n"), b.lanes/2, unroll, func(steps []step) {
				for _, s := range steps {
					v := s.load64(x)
					VSUBPD(mean, v, v)
					if s.mask != nil { // its words become double words
						m := b.vec()
						VPMOVSXDQ(s.mask, m)
						VANDPD(m, v, v)
					}
					VFMADD231PD(v, v, sums[s.u])
				}
			})
			b.result(b.fold64(sums, VADDPD))
		})
	kernel("normaliseVec", "func(dst, x, gamma, beta *float32, n int, mean, rstd float32)",
		"sets dst = (x-mean)*rstd*gamma + beta.", func(b *body) {
			dst, x, gamma, beta := pointer("dst"), pointer("x"), pointer("gamma"), pointer("beta")
			mean, rstd := b.scalar("mean"), b.scalar("rstd")
			b.each(pointer("n"), 2, func(s step) {
				v, g, z := s.load(x), s.load(gamma), s.load(beta)
				VSUBPS(mean, v, v)
				VMULPS(rstd, v, v)
				VFMADD213PS(z, g, v)
				s.store(v, dst)
			})
			b.done()
		})
	kernel("layerNormSumsVec", "func(dgamma, dbeta, x, gamma, dy *float32, n int, mean, rstd float32) (a, b float32)",
		"adds to dgamma and dbeta, returns the sums of dy*gamma and of dy*gamma*xhat.", func(b *body) {
			const unroll = 2
			dgamma, dbeta, xp := pointer("dgamma"), pointer("dbeta"), pointer("x")
			gamma, dyp := pointer("gamma"), pointer("dy")
			mean, rstd := b.scalar("mean"), b.scalar("rstd")
			sumA, sumB := b.zeros(unroll), b.zeros(unroll)
			b.each(pointer("n"), unroll, func(s step) {
				h, dy, g := s.load(xp), s.load(dyp), s.load(gamma)
				VSUBPS(mean, h, h)
				VMULPS(rstd, h, h)
				d := s.load(dgamma)
				VFMADD231PS(h, dy, d)
				s.store(d, dgamma)
				d = s.load(dbeta)
				VADDPS(dy, d, d)
				s.store(d, dbeta)
				// dy and gamma are zero beyond the end.
				VMULPS(dy, g, g)
				VADDPS(g, sumA[s.u], sumA[s.u])
				VFMADD231PS(g, h, sumB[s.u])
			})
			b.result(b.fold(sumA, VADDPS), b.fold(sumB, VADDPS))
		})
	const grad = "sets dx = rstd*(dy*gamma - a - xhat*b)"
	kernel("layerNormGradVec", "func(dx, x, gamma, dy *float32, n int, mean, rstd, a, b float32)", grad+".",
		func(b *body) {
			b.layerNormGrad(nil)
		})
	kernel("layerNormGradAddVec", "func(dx, x, gamma, dy, more *float32, n int, mean, rstd, a, b float32)",
		grad+" + more.", func(b *body) {
			b.layerNormGrad(pointer("more"))
		})
}

// layerNormGrad writes the second pass of the gradient; more may be nil.
func (b *body) layerNormGrad(more reg.Register) {
	dx, xp, gamma, dyp := pointer("dx"), pointer("x"), pointer("gamma"), pointer("dy")
	mean, rstd, sumA, sumB := b.scalar("mean"), b.scalar("rstd"), b.scalar("a"), b.scalar("b")
	b.each(pointer("n"), 2, func(s step) {
		h, dy, g := s.load(xp), s.load(dyp), s.load(gamma)
		VSUBPS(mean, h, h)
		VMULPS(rstd, h, h)
		VFMSUB213PS(sumA, g, dy)
		VFNMADD231PS(sumB, h, dy)
		VMULPS(rstd, dy, dy)
		if more != nil {
			VADDPS(s.load(more), dy, dy)
		}
		s.store(dy, dx)
	})
	b.done()
}
