package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wideKernel is kernel for what has a body for AVX-512 alone.
func wideKernel(name, signature, doc string, write func(b *body)) {
	declare(name, signature, doc)
	labels := 0
	write(&body{wide: true, lanes: 16, labels: &labels, name: name, hoist: map[uint32]reg.VecVirtual{}})
}

// Words that round to bfloat16: the lowest bit that stays, almost half of it, and the bit
// that keeps a NaN one.
const (
	halfOdd   = 1
	halfMost  = 0x7fff
	halfQuiet = 0x40
)

// halfAt is at for a slice of bfloat16.
func (s step) halfAt(p reg.Register) Mem {
	return Mem{Base: p, Index: s.i, Scale: 2, Disp: s.u * s.lanes * 2}
}

// loadHalf is load for a slice of bfloat16.
func (s step) loadHalf(p reg.Register) reg.VecVirtual {
	v := ZMM()
	if s.mask == nil {
		VPMOVZXWD(s.halfAt(p), v)
	} else {
		VPMOVZXWD_Z(s.halfAt(p), s.mask, v)
	}
	VPSLLD(Imm(16), v, v)
	return v
}

// half returns words with v rounded to bfloat16 in their lower halves, by the steps of
// plainHalf.
func (b *body) half(v reg.Register) reg.VecVirtual {
	upper, x, nan := ZMM(), ZMM(), K()
	VCMPPS(Imm(3), v, v, nan) // unordered
	VPSRLD(Imm(16), v, upper)
	VPANDD(b.cbits(halfOdd), upper, x)
	VPADDD(v, x, x)
	VPADDD(b.cbits(halfMost), x, x)
	VPSRLD(Imm(16), x, x)
	VPORD(b.cbits(halfQuiet), upper, nan, x)
	return x
}

// storeHalf stores words that half returned in a slice of bfloat16.
func (s step) storeHalf(x, p reg.Register) {
	if s.mask == nil {
		VPMOVDW(x, s.halfAt(p))
	} else {
		VPMOVDW(x, s.mask, s.halfAt(p))
	}
}

// halfRows writes a loop over vectors of rows of float32 one after the other, and of bfloat16 ld
// apart. dstSize and srcSize are the bytes of a value.
func halfRows(name, signature, doc string, dstSize, srcSize int, convert func(b *body, dst, src Mem)) {
	wideKernel(name, signature, doc, func(b *body) {
		dst, src, ld, rows, n, j := pointer("dst"), pointer("src"), pointer("ld"), pointer("rows"), pointer("n"), GP64()
		b.bits(halfOdd, halfMost, halfQuiet)
		Label("row")
		XORQ(j, j)
		Label("vector")
		convert(b, Mem{Base: dst, Index: j, Scale: uint8(dstSize)}, Mem{Base: src, Index: j, Scale: uint8(srcSize)})
		ADDQ(Imm(16), j)
		CMPQ(j, n)
		JL(LabelRef("vector"))
		if dstSize == floatSize {
			LEAQ(Mem{Base: dst, Index: n, Scale: floatSize}, dst)
			LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src)
		} else {
			LEAQ(Mem{Base: src, Index: n, Scale: floatSize}, src)
			LEAQ(Mem{Base: dst, Index: ld, Scale: 2}, dst)
		}
		DECQ(rows)
		JNZ(LabelRef("row"))
		b.done()
	})
}

// halves writes what follows a product whose result is bfloat16, and GELU on such values.
func halves() {
	load := func(b *body) { b.bits(halfOdd, halfMost, halfQuiet) }
	wideKernel("addToHalvesVec", "func(dst *uint16, x, y *float32, n int)", "sets dst = x + y, rounded.", func(b *body) {
		dst, x, y := pointer("dst"), pointer("x"), pointer("y")
		load(b)
		b.each(pointer("n"), 2, func(s step) {
			v := s.load(x)
			VADDPS(s.load(y), v, v)
			s.storeHalf(b.half(v), dst)
		})
		b.done()
	})
	wideKernel("addGELUToHalvesVec", "func(sum, dst *uint16, x, y *float32, n int)", "sets sum = x + y, rounded, and dst = GELU of sum, rounded.", func(b *body) {
		sum, dst, x, y := pointer("sum"), pointer("dst"), pointer("x"), pointer("y")
		load(b)
		geluConstants(b)
		b.each(pointer("n"), 1, func(s step) {
			v := s.load(x)
			VADDPS(s.load(y), v, v)
			h := b.half(v)
			s.storeHalf(h, sum)
			VPSLLD(Imm(16), h, h)
			s.storeHalf(b.half(b.gelu(h)), dst)
		})
		b.done()
	})
	wideKernel("addHalfVec", "func(dst, x *float32, y *uint16, n int)", "sets dst = x + y.", func(b *body) {
		dst, x, y := pointer("dst"), pointer("x"), pointer("y")
		b.each(pointer("n"), 2, func(s step) {
			v := s.loadHalf(y)
			VADDPS(s.load(x), v, v)
			s.store(v, dst)
		})
		b.done()
	})
	wideKernel("dropoutAddHalfVec", "func(dst, x *float32, y *uint16, bits *int32, n int, scale float32)", "is dropoutAddVec for y of bfloat16.", func(b *body) {
		dst, x, y, apply := pointer("dst"), pointer("x"), pointer("y"), b.dropout()
		b.each(pointer("n"), 2, func(s step) {
			v := apply(s, s.loadHalf(y))
			VADDPS(s.load(x), v, v)
			s.store(v, dst)
		})
		b.done()
	})
	halfRows("fromHalfRowsVec", "func(dst *float32, src *uint16, ld, rows, n int)", "sets dst to rows of n values, a multiple of 16, that are ld apart in src.", floatSize, 2, func(b *body, dst, src Mem) {
		v := ZMM()
		VPMOVZXWD(src, v)
		VPSLLD(Imm(16), v, v)
		VMOVUPS(v, dst)
	})
	halfRows("toHalfRowsVec", "func(dst *uint16, src *float32, ld, rows, n int)", "is fromHalfRowsVec the other way: the rows are ld apart in dst.", 2, floatSize, func(b *body, dst, src Mem) {
		v := ZMM()
		VMOVUPS(src, v)
		VPMOVDW(b.half(v), dst)
	})
	wideKernel("geluHalvesVec", "func(dst, x *uint16, n int)", "sets dst = GELU of x, rounded.", func(b *body) {
		dst, x := pointer("dst"), pointer("x")
		load(b)
		geluConstants(b)
		b.each(pointer("n"), 1, func(s step) { s.storeHalf(b.half(b.gelu(s.loadHalf(x))), dst) })
		b.done()
	})
	wideKernel("geluGradHalvesVec", "func(dst, x *uint16, dy *float32, n int)", "sets dst = dy times the derivative of GELU at x, rounded.", func(b *body) {
		dst, x, dy := pointer("dst"), pointer("x"), pointer("dy")
		load(b)
		geluConstants(b)
		b.constants(invSqrt2Pi)
		b.each(pointer("n"), 1, func(s step) {
			v := b.geluSlope(s.loadHalf(x))
			VMULPS(s.load(dy), v, v)
			s.storeHalf(b.half(v), dst)
		})
		b.done()
	})
}
