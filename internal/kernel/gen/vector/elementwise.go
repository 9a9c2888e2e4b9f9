package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elementwise writes the kernels that are one or two instructions an element.
func elementwise() {
	for _, k := range []struct {
		name, doc string
		op        func(ops ...Op)
	}{
		{"addVec", "sets dst = x + y.", VADDPS},
		{"subVec", "sets dst = x - y.", VSUBPS},
		{"mulVec", "sets dst = x * y.", VMULPS},
	} {
		kernel(k.name, "func(dst, x, y *float32, n int)", k.doc, func(b *body) {
			dst, x, y := pointer("dst"), pointer("x"), pointer("y")
			b.each(pointer("n"), 4, func(s step) {
				v, w := s.load(x), s.load(y)
				k.op(w, v, v)
				s.store(v, dst)
			})
			b.done()
		})
	}
	kernel("scaleVec", "func(dst, x *float32, n int, a float32)", "sets dst = a * x.", func(b *body) {
		dst, x, a := pointer("dst"), pointer("x"), b.scalar("a")
		b.each(pointer("n"), 4, func(s step) {
			v := s.load(x)
			VMULPS(a, v, v)
			s.store(v, dst)
		})
		b.done()
	})
	kernel("axpyVec", "func(dst, x *float32, n int, a float32)", "sets dst += a * x.", func(b *body) {
		dst, x, a := pointer("dst"), pointer("x"), b.scalar("a")
		b.each(pointer("n"), 4, func(s step) {
			v, d := s.load(x), s.load(dst)
			VFMADD231PS(v, a, d)
			s.store(d, dst)
		})
		b.done()
	})
	kernel("mulAddVec", "func(dst, x, y *float32, n int)", "sets dst += x * y.", func(b *body) {
		dst, x, y := pointer("dst"), pointer("x"), pointer("y")
		b.each(pointer("n"), 4, func(s step) {
			v, d := s.load(x), s.load(dst)
			VFMADD231PS(s.load(y), v, d)
			s.store(d, dst)
		})
		b.done()
	})
	kernel("axpbyVec", "func(dst, x, y *float32, n int, a, b float32)", "sets dst = a * x + b * y.", func(b *body) {
		dst, x, y, fx, fy := pointer("dst"), pointer("x"), pointer("y"), b.scalar("a"), b.scalar("b")
		b.each(pointer("n"), 4, func(s step) {
			v := s.load(x)
			VMULPS(fx, v, v)
			VFMADD231PS(s.load(y), fy, v)
			s.store(v, dst)
		})
		b.done()
	})
	kernel("fillVec", "func(dst *float32, n int, a float32)", "sets dst = a.", func(b *body) {
		dst, a := pointer("dst"), b.scalar("a")
		b.each(pointer("n"), 4, func(s step) { s.store(a, dst) })
		b.done()
	})
	kernel("emaVec", "func(dst, x *float32, n int, w float32)", "sets dst += w * (x - dst).", func(b *body) {
		dst, x, w := pointer("dst"), pointer("x"), b.scalar("w")
		b.each(pointer("n"), 4, func(s step) {
			v, d := s.load(x), s.load(dst)
			VSUBPS(d, v, v)
			VFMADD231PS(v, w, d)
			s.store(d, dst)
		})
		b.done()
	})
	kernel("mulSubVec", "func(dst, x, y *float32, n int, a float32)", "sets dst = x * (y - a).", func(b *body) {
		dst, x, y, a := pointer("dst"), pointer("x"), pointer("y"), b.scalar("a")
		b.each(pointer("n"), 4, func(s step) {
			v, w := s.load(x), s.load(y)
			VSUBPS(a, w, w)
			VMULPS(w, v, v)
			s.store(v, dst)
		})
		b.done()
	})
}

// dropout writes the kernels that apply a bit mask.
func dropout() {
	kernel("dropoutVec", "func(dst, x *float32, bits *int32, n int, scale float32)",
		"sets dst = scale * x where the bit is one and 0 elsewhere.", func(b *body) {
			dst, x, apply := pointer("dst"), pointer("x"), b.dropout()
			b.each(pointer("n"), 2, func(s step) { s.store(apply(s, s.load(x)), dst) })
			b.done()
		})
	kernel("dropoutAddVec", "func(dst, x, y *float32, bits *int32, n int, scale float32)",
		"sets dst = x + scale * y where the bit is one and x + 0 elsewhere.", func(b *body) {
			dst, x, y, apply := pointer("dst"), pointer("x"), pointer("y"), b.dropout()
			b.each(pointer("n"), 2, func(s step) {
				v := apply(s, s.load(y))
				VADDPS(s.load(x), v, v)
				s.store(v, dst)
			})
			b.done()
		})
}

// dropout loads the arguments bits and scale and returns what masks and scales a
// vector, in place.
func (b *body) dropout() func(s step, v reg.VecVirtual) reg.VecVirtual {
	d := b.dropoutMask()
	d.scale = b.scalar("scale")
	return d.apply
}

// dropoutMask is a row of bits and the factor of what they keep.
type dropoutMask struct {
	bits  reg.Register
	scale Op
	lane  Op
}

// dropoutMask loads the argument bits.
func (b *body) dropoutMask() dropoutMask {
	return dropoutMask{bits: pointer("bits"), lane: b.laneBits()}
}

// apply masks and scales a vector in place.
func (d dropoutMask) apply(s step, v reg.VecVirtual) reg.VecVirtual {
	byteAt := GP64()
	LEAQ(Mem{Base: s.i, Disp: s.u * s.lanes}, byteAt)
	SHRQ(Imm(3), byteAt)
	m := Mem{Base: d.bits, Index: byteAt, Scale: 1}
	if s.b.wide {
		k := K()
		KMOVW(m, k)
		VMULPS_Z(d.scale, v, k, v)
		return v
	}
	t := YMM()
	VPBROADCASTB(m, t)
	VPAND(d.lane, t, t)
	VPCMPEQD(d.lane, t, t)
	VMULPS(d.scale, v, v)
	VPAND(t, v, v)
	return v
}

// laneBits returns, for AVX2, a vector with bit i set in lane i.
func (b *body) laneBits() Op {
	if b.wide {
		return nil
	}
	return b.copy(lanes)
}

// adamW writes the optimiser step, alone and with the moving average of the
// parameters. The scalars are, in this order: gradient scale, lr*decay, beta1,
// 1-beta1, beta2, 1-beta2, 1/correct2, eps, lr/correct1.
func adamW() {
	kernel("adamwVec", "func(p, m, v, grad *float32, n int, scalars *float32)", "is AdamW; scalars as in gen/vector.",
		func(b *body) {
			b.adamW(func(step, reg.VecVirtual) {})
		})
	kernel("adamwEMAVec", "func(p, m, v, grad, twin *float32, n int, scalars *float32, w float32)",
		"is AdamW, then twin += w * (p - twin).", func(b *body) {
			twin, w := pointer("twin"), b.scalar("w")
			b.adamW(func(s step, p reg.VecVirtual) {
				d := s.load(twin)
				VSUBPS(d, p, p)
				VFMADD231PS(p, w, d)
				s.store(d, twin)
			})
		})
}

// adamW writes the update; then is given the new parameters, which it may change.
func (b *body) adamW(then func(s step, p reg.VecVirtual)) {
	pp, mp, vp, gp := pointer("p"), pointer("m"), pointer("v"), pointer("grad")
	scalars := pointer("scalars")
	var c [9]Op
	for i := range c {
		r := b.vec()
		VBROADCASTSS(Mem{Base: scalars, Disp: i * floatSize}, r)
		c[i] = r
	}
	b.each(pointer("n"), 1, func(s step) {
		g, m, v, p := s.load(gp), s.load(mp), s.load(vp), s.load(pp)
		VMULPS(c[0], g, g)
		VFNMADD231PS(c[1], p, p)
		VMULPS(c[2], m, m)
		VFMADD231PS(c[3], g, m)
		s.store(m, mp)
		VMULPS(g, g, g)
		VMULPS(c[4], v, v)
		VFMADD231PS(c[5], g, v)
		s.store(v, vp)
		VMULPS(c[6], v, v)
		VSQRTPS(v, v)
		VADDPS(c[7], v, v)
		VMULPS(c[8], m, m)
		VDIVPS(v, m, m)
		VSUBPS(m, p, p)
		s.store(p, pp)
		then(s, p)
	})
	b.done()
}
