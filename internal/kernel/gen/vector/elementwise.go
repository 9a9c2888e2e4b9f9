package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
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

// dropout writes the kernel that applies a bit mask.
func dropout() {
	kernel("dropoutVec", "func(dst, x *float32, bits *int32, n int, scale float32)",
		"sets dst = scale * x where the bit is one and 0 elsewhere.", func(b *body) {
			dst, x, bits, scale := pointer("dst"), pointer("x"), pointer("bits"), b.scalar("scale")
			lane := b.laneBits()
			b.each(pointer("n"), 2, func(s step) {
				byteAt := GP64()
				LEAQ(Mem{Base: s.i, Disp: s.u * s.lanes}, byteAt)
				SHRQ(Imm(3), byteAt)
				m := Mem{Base: bits, Index: byteAt, Scale: 1}
				v := s.load(x)
				if b.wide {
					k := K()
					KMOVW(m, k)
					VMULPS_Z(scale, v, k, v)
				} else {
					t := YMM()
					VPBROADCASTB(m, t)
					VPAND(lane, t, t)
					VPCMPEQD(lane, t, t)
					VMULPS(scale, v, v)
					VPAND(t, v, v)
				}
				s.store(v, dst)
			})
			b.done()
		})
}

// laneBits returns, for AVX2, a vector with bit i set in lane i.
func (b *body) laneBits() Op {
	if b.wide {
		return nil
	}
	m := GLOBL("vecLaneBits", RODATA|NOPTR)
	for i := range 8 {
		DATA(i*floatSize, U32(1<<i))
	}
	return b.copy(m)
}

// adamW writes the optimiser step. The scalars are, in this order: gradient
// scale, lr*decay, beta1, 1-beta1, beta2, 1-beta2, 1/correct2, eps, lr/correct1.
func adamW() {
	kernel("adamwVec", "func(p, m, v, grad *float32, n int, scalars *float32)", "is AdamW; scalars as in gen/vector.", func(b *body) {
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
		})
		b.done()
	})
}
