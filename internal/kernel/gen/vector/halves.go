package main

import (
	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
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

// roundingKernel is wideKernel for what rounds to bfloat16: with one body more, for AVX-512 BF16. (By integers alone
// rounding takes seven instructions.)
func roundingKernel(name, signature, doc string, write func(b *body)) {
	declare(name, signature, doc)
	labels := 0
	CMPB(NewDataAddr(Symbol{Name: hasBF16}, 0), Imm(0))
	JE(LabelRef("integers"))
	write(&body{wide: true, rounds: true, lanes: 16, labels: &labels, name: name, hoist: map[uint32]reg.VecVirtual{}})
	Label("integers")
	write(&body{wide: true, lanes: 16, labels: &labels, name: name, hoist: map[uint32]reg.VecVirtual{}})
}

// halfConstants loads what half needs.
func halfConstants(b *body) {
	if !b.rounds {
		b.bits(halfOdd, halfMost, halfQuiet)
	}
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

// half returns v rounded to bfloat16, for storeHalf and widen: by the instruction, and by the steps of plainHalf where
// there is none or a value is denormal, which the instruction takes for 0.
func (b *body) half(v reg.Register) reg.VecVirtual {
	if !b.rounds {
		return b.halfByIntegers(v, b.cbits)
	}
	const denormals = 0x20
	some, done, denormal, out := b.label("denormal"), b.label("rounded"), K(), ZMM()
	VFPCLASSPSZ(Imm(denormals), v, denormal)
	KORTESTW(denormal, denormal)
	JNE(LabelRef(some))
	VMOVAPS(v, reg.Z30)
	evex.VCVTNEPS2BF16(reg.Z30, reg.Z30)
	VMOVAPS(reg.Z30, out)
	b.later(func() {
		Label(some)
		VPMOVDW(b.halfByIntegers(v, broadcast), out.AsY())
		JMP(LabelRef(done))
	})
	Label(done)
	return out
}

// broadcast returns a constant that is loaded here.
func broadcast(bits uint32) Op {
	v := ZMM()
	VPBROADCASTD(memory(bits), v)
	return v
}

// halfByIntegers returns words with v rounded in their lower halves.
func (b *body) halfByIntegers(v reg.Register, constant func(bits uint32) Op) reg.VecVirtual {
	upper, x, nan := ZMM(), ZMM(), K()
	VCMPPS(Imm(3), v, v, nan) // unordered
	VPSRLD(Imm(16), v, upper)
	VPANDD(constant(halfOdd), upper, x)
	VPADDD(v, x, x)
	VPADDD(constant(halfMost), x, x)
	VPSRLD(Imm(16), x, x)
	VPORD(constant(halfQuiet), upper, nan, x)
	return x
}

// widen returns the float32 values of what half returned, which it may change.
func (b *body) widen(x reg.VecVirtual) reg.VecVirtual {
	if b.rounds {
		VPMOVZXWD(x.AsY(), x)
	}
	VPSLLD(Imm(16), x, x)
	return x
}

// storeHalf stores what half returned in a slice of bfloat16.
func (s step) storeHalf(x reg.VecVirtual, p reg.Register) { s.b.storeHalf(x, s.mask, s.halfAt(p)) }

// storeHalf stores what half returned, with a mask or whole.
func (b *body) storeHalf(x reg.VecVirtual, mask reg.Register, to Mem) {
	switch {
	case b.rounds && mask == nil:
		VMOVDQU16(x.AsY(), to)
	case b.rounds:
		VMOVDQU16(x.AsY(), mask, to)
	case mask == nil:
		VPMOVDW(x, to)
	default:
		VPMOVDW(x, mask, to)
	}
}

// halfRows writes a loop over vectors of rows of float32 one after the other, and of bfloat16 ld
// apart. dstSize and srcSize are the bytes of a value.
func halfRows(name, signature, doc string, dstSize, srcSize int, convert func(b *body, dst, src Mem)) {
	kernel := wideKernel
	if dstSize != floatSize {
		kernel = roundingKernel
	}
	kernel(name, signature, doc, func(b *body) {
		dst, src, ld, rows, n, j := pointer("dst"), pointer("src"), pointer("ld"), pointer("rows"), pointer("n"), GP64()
		halfConstants(b)
		row, vector := b.label("row"), b.label("vector")
		Label(row)
		XORQ(j, j)
		Label(vector)
		convert(b, Mem{Base: dst, Index: j, Scale: uint8(dstSize)}, Mem{Base: src, Index: j, Scale: uint8(srcSize)})
		ADDQ(Imm(16), j)
		CMPQ(j, n)
		JL(LabelRef(vector))
		if dstSize == floatSize {
			LEAQ(Mem{Base: dst, Index: n, Scale: floatSize}, dst)
			LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src)
		} else {
			LEAQ(Mem{Base: src, Index: n, Scale: floatSize}, src)
			LEAQ(Mem{Base: dst, Index: ld, Scale: 2}, dst)
		}
		DECQ(rows)
		JNZ(LabelRef(row))
		b.done()
	})
}

// halves writes what follows a product whose result is bfloat16, and GELU on such values.
func halves() {
	roundingKernel("addToHalvesVec", "func(dst *uint16, x, y *float32, n int)", "sets dst = x + y, rounded.",
		func(b *body) {
			dst, x, y := pointer("dst"), pointer("x"), pointer("y")
			halfConstants(b)
			b.each(pointer("n"), 2, func(s step) {
				v := s.load(x)
				VADDPS(s.load(y), v, v)
				s.storeHalf(b.half(v), dst)
			})
			b.done()
		})
	roundingKernel("addGELUToHalvesVec", "func(sum, dst *uint16, x, y *float32, n int)",
		"sets sum = x + y, rounded, and dst = GELU of sum, rounded.", func(b *body) {
			sum, dst, x, y := pointer("sum"), pointer("dst"), pointer("x"), pointer("y")
			halfConstants(b)
			halfGELUConstants(b)
			b.each(pointer("n"), 1, func(s step) {
				v := s.load(x)
				VADDPS(s.load(y), v, v)
				h := b.half(v)
				s.storeHalf(h, sum)
				s.storeHalf(b.half(b.halfGELU(b.widen(h))), dst)
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
	wideKernel("dropoutAddHalfVec", "func(dst, x *float32, y *uint16, bits *int32, n int, scale float32)",
		"is dropoutAddVec for y of bfloat16.", func(b *body) {
			dst, x, y, apply := pointer("dst"), pointer("x"), pointer("y"), b.dropout()
			b.each(pointer("n"), 2, func(s step) {
				v := apply(s, s.loadHalf(y))
				VADDPS(s.load(x), v, v)
				s.store(v, dst)
			})
			b.done()
		})
	halfRows("fromHalfRowsVec", "func(dst *float32, src *uint16, ld, rows, n int)",
		"sets dst to rows of n values, a multiple of 16, that are ld apart in src.", floatSize, 2,
		func(b *body, dst, src Mem) {
			v := ZMM()
			VPMOVZXWD(src, v)
			VPSLLD(Imm(16), v, v)
			VMOVUPS(v, dst)
		})
	halfRows("toHalfRowsVec", "func(dst *uint16, src *float32, ld, rows, n int)",
		"is fromHalfRowsVec the other way: the rows are ld apart in dst.", 2, floatSize, func(b *body, dst, src Mem) {
			v := ZMM()
			VMOVUPS(src, v)
			b.storeHalf(b.half(v), nil, dst)
		})
	roundingKernel("geluHalvesVec", "func(dst, x *uint16, n int)", "sets dst = GELU of x, rounded.", func(b *body) {
		dst, x := pointer("dst"), pointer("x")
		halfConstants(b)
		halfGELUConstants(b)
		b.each(pointer("n"), 1, func(s step) { s.storeHalf(b.half(b.halfGELU(s.loadHalf(x))), dst) })
		b.done()
	})
	roundingKernel("geluGradHalvesVec", "func(dst, x *uint16, dy *float32, n int)",
		"sets dst = dy times the derivative of GELU at x, rounded.", func(b *body) {
			dst, x, dy := pointer("dst"), pointer("x"), pointer("dy")
			halfConstants(b)
			halfGELUConstants(b)
			b.constants(1)
			b.each(pointer("n"), 1, func(s step) {
				v := b.halfGELUSlope(s.loadHalf(x))
				VMULPS(s.load(dy), v, v)
				s.storeHalf(b.half(v), dst)
			})
			b.done()
		})
	roundingKernel("geluDropoutHalvesVec", "func(dst, x *uint16, bits *int32, n int, scale float32)",
		"sets dst = GELU of x times scale where the bit is one, else 0, rounded.", func(b *body) {
			dst, x, apply := pointer("dst"), pointer("x"), b.dropout()
			halfConstants(b)
			halfGELUConstants(b)
			b.each(pointer("n"), 1, func(s step) { s.storeHalf(b.half(apply(s, b.halfGELU(s.loadHalf(x)))), dst) })
			b.done()
		})
	roundingKernel("geluDropoutGradHalvesVec", "func(dst, x, dy *uint16, bits *int32, n int, scale float32)",
		"sets dst = dy times the derivative of GELU at x times scale where the bit is one, else 0, rounded.",
		func(b *body) {
			dst, x, dy, apply := pointer("dst"), pointer("x"), pointer("dy"), b.dropout()
			halfConstants(b)
			halfGELUConstants(b)
			b.constants(1)
			b.each(pointer("n"), 1, func(s step) {
				v := b.halfGELUSlope(s.loadHalf(x))
				VMULPS(s.loadHalf(dy), v, v)
				s.storeHalf(b.half(apply(s, v)), dst)
			})
			b.done()
		})
}
