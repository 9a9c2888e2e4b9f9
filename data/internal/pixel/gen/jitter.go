package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// address returns the place of a parameter on the stack.
func address(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// box writes one pass of a box filter of 3 or 5 taps: the outermost weigh far, the
// others near, in units of 2^-24.
func (s *isa) box(taps int) {
	names := [][]string{{"a", "b", "c"}, {"a", "b", "c", "d", "e"}}[taps/5]
	if taps == 3 {
		s.begin("box3", "func(dst, a, b, c *uint8, n int, near, far uint32)",
			"sets dst = b near + (a + c) far, n >= 16.")
	} else {
		s.begin("box5", "func(dst, a, b, c, d, e *uint8, n int, near, far uint32)",
			"sets dst = (b + c + d) near + (a + e) far, n >= 16.")
	}
	dst, n := arg("dst"), arg("n")
	var p []reg.GPVirtual
	for _, name := range names {
		p = append(p, arg(name))
	}
	near, far := s.vec(), s.vec()
	// The same move as VPBROADCASTD, which vet takes for one of 8 bytes.
	VBROADCASTSS(address("near"), near)
	VBROADCASTSS(address("far"), far)
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		var parts []reg.VecVirtual
		for g := range s.groups() {
			sum := func(p ...reg.GPVirtual) (v reg.VecVirtual) {
				for k, q := range p {
					t := s.vec()
					VPMOVZXBD(Mem{Base: q, Index: i, Scale: 1, Disp: 8 * g}, t)
					if k == 0 {
						v = t
					} else {
						VPADDD(t, v, v)
					}
				}
				return v
			}
			inner, outer := sum(p[1:taps-1]...), sum(p[0], p[taps-1])
			VPMULLD(near, inner, inner)
			VPMULLD(far, outer, outer)
			VPADDD(outer, inner, inner)
			VPADDD(words(1<<23), inner, inner)
			VPSRLD(Imm(24), inner, inner)
			parts = append(parts, inner)
		}
		VMOVDQU(s.bytesOf(parts...), Mem{Base: dst, Index: i, Scale: 1})
	})
	end()
}

// widen returns value g of the groups of 16 bytes as 32-bit values. It changes bytes.
func (s *isa) widen(bytes reg.VecVirtual, g int) reg.VecVirtual {
	v := s.vec()
	if g == 1 {
		VPSRLDQ(Imm(8), bytes, bytes)
	}
	VPMOVZXBD(bytes, v)
	return v
}

// luma returns the brightness of 32-bit channels.
func (s *isa) luma(channels [3]reg.VecVirtual) reg.VecVirtual {
	sum := s.vec()
	for c, weight := range [3]uint32{19595, 38470, 7471} {
		t := s.vec()
		VPMULLD(words(weight), channels[c], t)
		if c == 0 {
			VPADDD(words(1<<15), t, sum)
		} else {
			VPADDD(t, sum, sum)
		}
	}
	VPSRLD(Imm(16), sum, sum)
	return sum
}

// blend returns base + factor*(v - base), truncated, of floats. It changes v.
func (s *isa) blend(base, v, factor reg.VecVirtual) reg.VecVirtual {
	VSUBPS(base, v, v)
	VMULPS(factor, v, v)
	VADDPS(base, v, v)
	VCVTTPS2DQ(v, v)
	return v
}

// saturate moves pixels away from their brightness.
func (s *isa) saturate() {
	s.begin("saturate", "func(pix *uint8, n int, factor float32)", "changes n pixels in place, n a multiple of 16.")
	pix, n := arg("pix"), arg("n")
	factor := s.vec()
	VBROADCASTSS(address("factor"), factor)
	at := GP64()
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		LEAQ(Mem{Base: i, Index: i, Scale: 2}, at)
		m := Mem{Base: pix, Index: at, Scale: 1}
		bytes := split(m)
		var parts [3][]reg.VecVirtual
		for g := range s.groups() {
			var v [3]reg.VecVirtual
			for c := range v {
				v[c] = s.widen(bytes[c], g)
			}
			gray := s.luma(v)
			VCVTDQ2PS(gray, gray)
			for c := range v {
				VCVTDQ2PS(v[c], v[c])
				parts[c] = append(parts[c], s.blend(gray, v[c], factor))
			}
		}
		var out [3]reg.VecVirtual
		for c := range out {
			out[c] = s.bytesOf(parts[c]...)
		}
		join(out, m)
	})
	end()
}

// lumaSum adds up the brightness of pixels.
func (s *isa) lumaSum() {
	s.begin("lumaSum", "func(sums *uint32, src *uint8, n int)",
		"sets the 16 sums (8 for AVX2) to parts of the brightness of n pixels, n a multiple of 16.")
	sums, src, n := arg("sums"), arg("src"), arg("n")
	total := s.vec()
	if s.wide {
		VPXORD(total, total, total)
	} else {
		VPXOR(total, total, total)
	}
	at := GP64()
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		LEAQ(Mem{Base: i, Index: i, Scale: 2}, at)
		bytes := split(Mem{Base: src, Index: at, Scale: 1})
		for g := range s.groups() {
			var v [3]reg.VecVirtual
			for c := range v {
				v[c] = s.widen(bytes[c], g)
			}
			VPADDD(s.luma(v), total, total)
		}
	})
	if s.wide {
		VMOVDQU32(total, Mem{Base: sums})
	} else {
		VMOVDQU(total, Mem{Base: sums})
	}
	end()
}

// shade moves values away from one value.
func (s *isa) shade() {
	s.begin("shade", "func(pix *uint8, n int, base, factor float32)", "changes n bytes in place, n a multiple of 16.")
	pix, n := arg("pix"), arg("n")
	base, factor := s.vec(), s.vec()
	VBROADCASTSS(address("base"), base)
	VBROADCASTSS(address("factor"), factor)
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		var parts []reg.VecVirtual
		for g := range s.groups() {
			v := s.vec()
			VPMOVZXBD(Mem{Base: pix, Index: i, Scale: 1, Disp: 8 * g}, v)
			VCVTDQ2PS(v, v)
			parts = append(parts, s.blend(base, v, factor))
		}
		VMOVDQU(s.bytesOf(parts...), Mem{Base: pix, Index: i, Scale: 1})
	})
	end()
}
