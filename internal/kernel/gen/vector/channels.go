package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const greater = 0x1e // predicate of comparisons: greater, false for NaN

// channels writes the passes of a batch norm over rows of n channels.
//
// Sums are in float64, and conversions to float64 are what limits them: see reductions. Those of a few columns stay in
// registers over all rows. Sums are stored in whole vectors, so there must be room for a multiple of 4.
func channels() {
	narrowKernel("columnMomentsVec", "func(sum, square *float64, x, from *float32, rows, n int)",
		"adds the column sums of x - from and of its square.", func(b *body) {
			const unroll = 4
			sum, square, x, from := pointer("sum"), pointer("square"), pointer("x"), pointer("from")
			b.columnSums(x, pointer("rows"), pointer("n"), unroll, func(steps []step) (func(row reg.Register), func()) {
				sums, squares, shift := b.zeros(len(steps)), b.zeros(len(steps)), make([]reg.VecVirtual, len(steps))
				for u, s := range steps {
					shift[u] = s.load(from)
				}
				return func(row reg.Register) {
						for u, s := range steps {
							v := s.load(row)
							VSUBPS(shift[u], v, v)
							d := b.vec()
							VCVTPS2PD(v, d)
							VADDPD(d, sums[u], sums[u])
							VFMADD231PD(d, d, squares[u])
						}
					}, func() {
						for u, s := range steps {
							s.addTo64(sum, sums[u])
							s.addTo64(square, squares[u])
						}
					}
			})
		})
	for _, gated := range []bool{false, true} {
		name, signature, doc := "columnDotsVec", "func(sum, product *float64, x, from, dy *float32, rows, n int)",
			"adds the column sums of dy and of dy*(x - from)."
		unroll := 4
		if gated {
			name, signature = "columnDotsReLUVec",
				"func(sum, product *float64, x, from, dy, scale, shift *float32, rows, n int)"
			doc = "is columnDotsVec of dy where (x - from)*scale + shift is greater than 0, else of 0."
			unroll = 2
		}
		narrowKernel(name, signature, doc, func(b *body) {
			sum, product, x, from, dy := pointer("sum"), pointer("product"), pointer("x"), pointer("from"),
				pointer("dy")
			var scale, shift reg.Register
			if gated {
				scale, shift = pointer("scale"), pointer("shift")
			}
			away := GP64() // from a row of x to that of dy
			MOVQ(dy, away)
			SUBQ(x, away)
			b.columnSums(x, pointer("rows"), pointer("n"), unroll, func(steps []step) (func(row reg.Register), func()) {
				sums, products := b.zeros(len(steps)), b.zeros(len(steps))
				mean := make([]reg.VecVirtual, len(steps))
				for u, s := range steps {
					mean[u] = s.load(from)
				}
				return func(row reg.Register) {
						other := GP64()
						LEAQ(Mem{Base: row, Index: away, Scale: 1}, other)
						for u, s := range steps {
							v, g := s.load(row), s.load(other)
							VSUBPS(mean[u], v, v)
							if gated {
								y, zero := s.load(scale), XMM()
								VFMADD213PS(s.load(shift), v, y)
								VXORPS(zero, zero, zero)
								VCMPPS(Imm(greater), zero, y, y)
								VANDPS(y, g, g)
							}
							d, e := b.vec(), b.vec()
							VCVTPS2PD(v, d)
							VCVTPS2PD(g, e)
							VADDPD(e, sums[u], sums[u])
							VFMADD231PD(d, e, products[u])
						}
					}, func() {
						for u, s := range steps {
							s.addTo64(sum, sums[u])
							s.addTo64(product, products[u])
						}
					}
			})
		})
	}
	for _, added := range []bool{false, true} {
		name, signature, doc := "normaliseColumnsVec",
			"func(dst, x, mean, scale, shift *float32, rows, n int, floor float32)",
			"sets dst = max((x - mean)*scale + shift, floor)."
		if added {
			name, signature = "normaliseColumnsAddVec",
				"func(dst, x, add, mean, scale, shift *float32, rows, n int, floor float32)"
			doc = "sets dst = max((x - mean)*scale + shift + add, floor)."
		}
		kernel(name, signature, doc, func(b *body) {
			dst, x, mean, scale, shift := pointer("dst"), pointer("x"), pointer("mean"), pointer("scale"),
				pointer("shift")
			streams := []reg.Register{dst, x}
			if added {
				streams = append(streams, pointer("add"))
			}
			floor := b.scalar("floor")
			b.channelRows(pointer("rows"), pointer("n"), streams, func(s step) {
				v, y := s.load(x), s.load(scale)
				VSUBPS(s.load(mean), v, v)
				VFMADD213PS(s.load(shift), v, y)
				if added {
					VADDPS(s.load(streams[2]), y, y)
				}
				VMAXPS(y, floor, y) // the second source comes out if one is a NaN
				s.store(y, dst)
			})
		})
	}
	for _, gated := range []bool{false, true} {
		name, signature, doc := "columnGradVec", "func(dx, x, dy, mean, scale, a, b *float32, rows, n int)",
			"sets dx = dy*scale + (x - mean)*b + a."
		if gated {
			name, signature = "columnGradReLUVec", "func(dx, x, dy, mean, scale, shift, a, b *float32, rows, n int)"
			doc = "is columnGradVec of dy where (x - mean)*scale + shift is greater than 0, else of 0."
		}
		kernel(name, signature, doc, func(b *body) {
			dx, x, dy, mean, scale, ap, bp := pointer("dx"), pointer("x"), pointer("dy"), pointer("mean"),
				pointer("scale"), pointer("a"), pointer("b")
			var shift reg.Register
			if gated {
				shift = pointer("shift")
			}
			b.channelRows(pointer("rows"), pointer("n"), []reg.Register{dx, x, dy}, func(s step) {
				v, g, c := s.load(x), s.load(dy), s.load(scale)
				VSUBPS(s.load(mean), v, v)
				if gated {
					y := b.copy(c)
					VFMADD213PS(s.load(shift), v, y)
					b.positive(y, g)
				}
				VMULPS(c, g, g)
				r := s.load(bp)
				VFMADD213PS(s.load(ap), v, r)
				VADDPS(r, g, g)
				s.store(g, dx)
			})
		})
	}
	kernel("reluVec", "func(dst, x *float32, n int)", "sets dst = max(x, 0).", func(b *body) {
		dst, x, zero := pointer("dst"), pointer("x"), b.zero()
		b.each(pointer("n"), 4, func(s step) {
			v := s.load(x)
			VMAXPS(v, zero, v)
			s.store(v, dst)
		})
		b.done()
	})
	kernel("clipVec", "func(dst, x *float32, n int, limit float32)", "sets dst = min(max(x, 0), limit).", func(b *body) {
		dst, x, zero, limit := pointer("dst"), pointer("x"), b.zero(), b.scalar("limit")
		b.each(pointer("n"), 4, func(s step) {
			v := s.load(x)
			VMAXPS(v, zero, v)
			VMINPS(v, limit, v)
			s.store(v, dst)
		})
		b.done()
	})
	kernel("reluGradVec", "func(dx, y, dy *float32, n int)", "sets dx = dy where y is greater than 0, else 0.",
		func(b *body) {
			dx, y, dy := pointer("dx"), pointer("y"), pointer("dy")
			b.each(pointer("n"), 4, func(s step) {
				g := s.load(dy)
				b.positive(s.load(y), g)
				s.store(g, dx)
			})
			b.done()
		})
}

// positive sets g to 0 where y is not greater than 0. It changes y.
func (b *body) positive(y, g reg.VecVirtual) {
	zero := b.zero()
	if b.wide {
		k := K()
		VCMPPS(Imm(greater), zero, y, k)
		VMOVAPS_Z(g, k, g)
		return
	}
	VCMPPS(Imm(greater), zero, y, y)
	VANDPS(y, g, g)
}

// columnSums goes over columns in steps of four values; of each batch of steps begin returns what to do with a row and
// what to do behind the last.
func (b *body) columnSums(x, rows, n reg.Register, unroll int, begin func(steps []step) (each func(row reg.Register),
	end func())) {
	stride := GP64()
	MOVQ(n, stride)
	SHLQ(Imm(2), stride)
	b.loop(n, b.lanes/2, unroll, func(steps []step) {
		each, end := begin(steps)
		row, left, top := GP64(), GP64(), b.label("row")
		MOVQ(x, row)
		MOVQ(rows, left)
		Label(top)
		each(row)
		ADDQ(stride, row)
		DECQ(left)
		JNZ(LabelRef(top))
		end()
	})
	b.done()
}

// channelRows does each with all rows of n values; streams are the operands that have rows of their own, side by side.
func (b *body) channelRows(rows, n reg.Register, streams []reg.Register, write func(s step)) {
	stride, top := GP64(), b.label("row")
	MOVQ(n, stride)
	SHLQ(Imm(2), stride)
	Label(top)
	b.each(n, 2, write)
	for _, p := range streams {
		ADDQ(stride, p)
	}
	DECQ(rows)
	JNZ(LabelRef(top))
	b.done()
}

// addTo64 adds v, four float64, to those of the step in the slice at p.
func (s step) addTo64(p reg.Register, v reg.VecVirtual) {
	m := Mem{Base: p, Index: s.i, Scale: 8, Disp: s.u * s.lanes * 8}
	VADDPD(m, v, v)
	VMOVUPD(v, m)
}
