package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sin(x) = x + x z (c0 + c1 z + ...) for z = x^2, |x| <= pi/2: a minimax fit by
// experiments/fit_vector.py, of absolute error 1.1e-7 with all roundings and never beyond 1,
// coefficients from the highest power down.
var sinP = []float32{2.600054585855105e-06, -0.00019806614727713168, 0.008333020843565464, -0.16666658222675323}

// paths writes the kernels of distances over a graph.
func paths() {
	kernel("minPlusVec", "func(dst, x *float32, n int, a float32)", "sets dst = min(dst, a + x).", func(b *body) {
		dst, x, a := pointer("dst"), pointer("x"), b.scalar("a")
		b.each(pointer("n"), 4, func(s step) {
			v, d := s.load(x), s.load(dst)
			VADDPS(a, v, v)
			VMINPS(d, v, d) // the first source comes out if one is a NaN
			s.store(d, dst)
		})
		b.done()
	})
	kernel("pathCosVec", "func(dst, entry *float32, owner *int32, reach *float32, n, last int, limit, turn, turnLo float32) uint32",
		"sets dst = cos(min(|entry[owner] + reach|, limit) * (turn+turnLo)) and returns the largest owner; owners beyond last read entry[last].", func(b *body) {
			b.bits(withoutSign)
			b.constants(piHi / 2)
			b.constants(sinP...)
			dst := pointer("dst")
			d := b.distances()
			b.each(pointer("n"), 2, func(s step) {
				a := d.load(s)
				VANDPS(b.cbits(withoutSign), a, a)
				VMINPS(a, d.limit, a) // a NaN comes out of the second source
				x := b.copy(b.c(piHi / 2))
				VFNMADD231PS(d.turn, a, x)
				VFNMADD231PS(d.turnLo, a, x)
				s.store(b.sin(x), dst)
			})
			d.done()
		})
	kernel("pathCosSlopeVec", "func(dst, entry *float32, owner *int32, reach, dy *float32, n, last int, limit, turn, turnLo float32) uint32",
		"sets dst = -dy * sin(t*(turn+turnLo)) * turn for t = entry[owner] + reach, 0 where |t| >= limit; returns the largest owner as pathCosVec.", func(b *body) {
			b.bits(withoutSign, signBit)
			b.constants(piHi)
			b.constants(sinP...)
			dst, dyp := pointer("dst"), pointer("dy")
			d := b.distances()
			b.each(pointer("n"), 2, func(s step) {
				t := d.load(s)
				a, angle, mirrored, dy := b.vec(), b.vec(), b.copy(b.c(piHi)), s.load(dyp)
				VANDPS(b.cbits(withoutSign), t, a)
				VMULPS(d.turn, a, angle)
				VFMADD231PS(d.turnLo, a, angle)
				VFNMADD231PS(d.turn, a, mirrored)
				VFNMADD231PS(d.turnLo, a, mirrored)
				VMINPS(mirrored, angle, angle) // sin(x) = sin(pi-x)
				VANDPS(b.cbits(signBit), t, t)
				VXORPS(b.cbits(signBit), dy, dy)
				VXORPS(t, dy, dy)
				y := b.sin(angle)
				VMULPS(d.turn, y, y)
				VMULPS(dy, y, y)
				// Everything but a >= limit, so that a NaN passes.
				if b.wide {
					inside := K()
					VCMPPS(Imm(25), d.limit, a, inside)
					VMOVUPS_Z(y, inside, y)
				} else {
					VCMPPS(Imm(25), d.limit, a, a)
					VANDPS(a, y, y)
				}
				s.store(y, dst)
			})
			d.done()
		})
}

// sin returns sin(x) for |x| <= pi/2.
func (b *body) sin(x reg.VecVirtual) reg.VecVirtual {
	z := b.vec()
	VMULPS(x, x, z)
	p := b.horner(z, sinP...)
	VMULPS(z, p, p)
	VFMADD213PS(x, x, p)
	return p
}

// distances is what the distances of points are read from.
type distances struct {
	b                   *body
	entry, owner, reach reg.Register
	limit, turn, turnLo reg.VecVirtual
	last, highest       reg.VecVirtual // of owners
}

// distances loads the arguments that pathCosVec and pathCosSlopeVec share.
func (b *body) distances() *distances {
	d := &distances{
		b: b, entry: pointer("entry"), owner: pointer("owner"), reach: pointer("reach"),
		limit: b.scalar("limit"), turn: b.scalar("turn"), turnLo: b.scalar("turnLo"),
		last: b.vec(), highest: b.zero(),
	}
	last, low := pointer("last"), XMM()
	VMOVQ(last, low)
	VPBROADCASTD(low, d.last)
	return d
}

// load returns entry[owner] + reach. Owners count as unsigned, so that a negative one is
// beyond last too. A gather merges into its result and takes as long for lanes that
// a mask excludes, so that all lanes are read: those beyond the end have owner 0.
func (d *distances) load(s step) reg.VecVirtual {
	index, v := s.load(d.owner), d.b.zero()
	VPMAXUD(index, d.highest, d.highest)
	VPMINUD(d.last, index, index)
	m := Mem{Base: d.entry, Index: index, Scale: floatSize}
	if d.b.wide {
		all := K()
		KXNORW(all, all, all)
		VGATHERDPS(m, all, v)
	} else {
		all := d.b.vec()
		VPCMPEQD(all, all, all)
		VGATHERDPS(all, m, v)
	}
	VADDPS(s.load(d.reach), v, v)
	return v
}

// done ends a body that returns the largest owner.
func (d *distances) done() {
	r := GP32()
	VMOVD(d.b.fold([]reg.VecVirtual{d.highest}, VPMAXUD), r)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
