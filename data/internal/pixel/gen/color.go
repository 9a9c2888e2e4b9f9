package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// split reads 48 bytes at m and returns the 16 values of each channel.
func split(m Mem) (channels [3]reg.VecVirtual) {
	var in [3]reg.VecVirtual
	for i := range in {
		in[i] = XMM()
		VMOVDQU(m.Offset(16*i), in[i])
	}
	for c := range channels {
		for i := range in {
			var index [16]int
			for j := range index {
				index[j] = -1
				if at := 3*j + c - 16*i; at >= 0 && at < 16 {
					index[j] = at
				}
			}
			t := XMM()
			VPSHUFB(bytes16(fmt.Sprintf("split%d%d", c, i), index), in[i], t)
			if i == 0 {
				channels[c] = t
			} else {
				VPOR(t, channels[c], channels[c])
			}
		}
	}
	return channels
}

// join stores 16 values of each channel as 48 bytes at m.
func join(channels [3]reg.VecVirtual, m Mem) {
	for i := range 3 {
		var out reg.VecVirtual
		for c := range channels {
			var index [16]int
			for j := range index {
				index[j] = -1
				if at := 16*i + j; at%3 == c {
					index[j] = at / 3
				}
			}
			t := XMM()
			VPSHUFB(bytes16(fmt.Sprintf("join%d%d", c, i), index), channels[c], t)
			if c == 0 {
				out = t
			} else {
				VPOR(t, out, out)
			}
		}
		VMOVDQU(out, m.Offset(16*i))
	}
}

// normalize writes (v/255 - mean) / std. Both quotients come out as if divided:
// q = a*y with y the rounded reciprocal of b, r = a - b*q, q + r*y (Markstein
// 1990, theorem 8.3); package pixel tries all bytes before it relies on it.
func (s *isa) normalize() {
	s.begin("normalize", "func(dst *float32, src *uint8, n int, constants *float32)",
		"writes the planes of n RGB pixels, n >= 16; constants are 1/255, and mean, std, 1/std of each channel, each 16 times.")
	src, n, constants := arg("src"), arg("n"), arg("constants")
	var plane [3]reg.GPVirtual
	plane[0] = arg("dst")
	for c := 1; c < 3; c++ {
		plane[c] = GP64()
		LEAQ(Mem{Base: plane[c-1], Index: n, Scale: 4}, plane[c])
	}
	constant := func(i int) Mem { return Mem{Base: constants, Disp: 64 * i} }
	by := s.vec() // 1/255
	VMOVUPS(constant(0), by)
	most := s.vec()
	VMOVUPS(words(math.Float32bits(255)), most)
	at := GP64()
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		LEAQ(Mem{Base: i, Index: i, Scale: 2}, at)
		for c, bytes := range split(Mem{Base: src, Index: at, Scale: 1}) {
			for g := range s.groups() {
				v := s.vec()
				if g == 1 {
					VPSRLDQ(Imm(8), bytes, bytes)
				}
				VPMOVZXBD(bytes, v)
				VCVTDQ2PS(v, v)
				v = s.divide(v, most, by)
				VSUBPS(constant(1+3*c), v, v)
				v = s.divide(v, constant(2+3*c), constant(3+3*c))
				VMOVUPS(v, Mem{Base: plane[c], Index: i, Scale: 4, Disp: 32 * g})
			}
		}
	})
	end()
}

// divide returns a / b; y is 1/b. It changes a.
func (s *isa) divide(a reg.VecVirtual, b, y Op) reg.VecVirtual {
	q := s.vec()
	VMULPS(y, a, q)
	VFNMADD231PS(b, q, a)
	VFMADD231PS(y, a, q)
	return q
}

// yCbCr writes the conversion of a row to RGB, in the fixed point of libjpeg, whose constants are cut to 16 bits:
// 91881 = 65536 + 26345, -46802 = -65536 + 18734, 116130 = 2 * 65536 - 14942. Half of the upper bits of a product
// of twice a number, rounded, are those of the rounded product.
func yCbCr() {
	s := &isa{name: "AVX2"}
	s.begin("yCbCr", "func(dst, y, cb, cr *uint8, n int)", "converts n pixels to RGB, n >= 16.")
	dst, py, pb, pr, n := arg("dst"), arg("y"), arg("cb"), arg("cr"), arg("n")
	at := GP64()
	load := func(p, i reg.Register) reg.VecVirtual {
		v := YMM()
		VPMOVZXBW(Mem{Base: p, Index: i, Scale: 1}, v)
		return v
	}
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		LEAQ(Mem{Base: i, Index: i, Scale: 2}, at)
		y, b, r := load(py, i), load(pb, i), load(pr, i)
		VPSUBW(shorts(128), b, b)
		VPSUBW(shorts(128), r, r)
		twice := func(v reg.VecVirtual, k int16) (double, part reg.VecVirtual) {
			double, part = YMM(), YMM()
			VPADDW(v, v, double)
			VPMULHW(shorts(uint16(k)), double, part)
			VPADDW(shorts(1), part, part)
			VPSRAW(Imm(1), part, part)
			VPADDW(y, part, part)
			return double, part
		}
		_, red := twice(r, 26345)
		VPADDW(r, red, red)
		double, blue := twice(b, -14942)
		VPADDW(double, blue, blue)
		low, high := YMM(), YMM()
		VPUNPCKLWD(r, b, low)
		VPUNPCKHWD(r, b, high)
		for _, v := range []reg.VecVirtual{low, high} {
			VPMADDWD(words(0x10000-22554|18734<<16), v, v)
			VPADDD(words(1<<15), v, v)
			VPSRAD(Imm(16), v, v)
		}
		VPACKSSDW(high, low, low)
		VPSUBW(r, low, low)
		VPADDW(y, low, low)
		var out [3]reg.VecVirtual
		for c, v := range []reg.VecVirtual{red, low, blue} {
			VPACKUSWB(v, v, v)
			VPERMQ(Imm(0xd8), v, v)
			out[c] = v.AsX().(reg.VecVirtual)
		}
		join(out, Mem{Base: dst, Index: at, Scale: 1})
	})
	end()
}

// sharpen writes one inner row of the sharpness operation.
func (s *isa) sharpen() {
	s.begin("sharpen", "func(dst, up, row, down *uint8, n int, factor float32)",
		"sharpens n bytes whose neighbours are 3 bytes away, n >= 16.")
	dst, up, row, down, n := arg("dst"), arg("up"), arg("row"), arg("down"), arg("n")
	p, err := Param("factor").Resolve()
	if err != nil {
		panic(err)
	}
	factor := s.vec()
	VBROADCASTSS(p.Addr, factor)
	load := func(p, i reg.Register, disp int) reg.VecVirtual {
		v := YMM()
		VPMOVZXBW(Mem{Base: p, Index: i, Scale: 1, Disp: disp}, v)
		return v
	}
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		mid := load(row, i, 0)
		sum := YMM()
		VPSLLW(Imm(2), mid, sum)
		VPADDW(mid, sum, sum)
		for _, q := range []struct {
			p    reg.Register
			disp int
		}{{up, -3}, {up, 0}, {up, 3}, {row, -3}, {row, 3}, {down, -3}, {down, 0}, {down, 3}} {
			VPADDW(load(q.p, i, q.disp), sum, sum)
		}
		// (2 sum + 13) / 26 as a product, exact for sums of 13 bytes.
		VPADDW(sum, sum, sum)
		VPADDW(shorts(13), sum, sum)
		VPMULHUW(shorts(10083), sum, sum)
		VPSRLW(Imm(2), sum, sum)
		var parts []reg.VecVirtual
		for g := range s.groups() {
			a, b := s.vec(), s.vec()
			for _, w := range []struct{ from, to reg.VecVirtual }{{sum, a}, {mid, b}} {
				if s.wide {
					VPMOVZXWD(w.from, w.to)
				} else if g == 0 {
					VPMOVZXWD(w.from.AsX(), w.to)
				} else {
					high := XMM()
					VEXTRACTI128(Imm(1), w.from, high)
					VPMOVZXWD(high, w.to)
				}
				VCVTDQ2PS(w.to, w.to)
			}
			VSUBPS(a, b, b)
			VMULPS(factor, b, b)
			VADDPS(a, b, b)
			VCVTTPS2DQ(b, b)
			parts = append(parts, b)
		}
		VMOVDQU(s.bytesOf(parts...), Mem{Base: dst, Index: i, Scale: 1})
	})
	end()
}

// weigh writes 3a + b of bytes as 16-bit values.
func weigh() {
	s := &isa{name: "AVX2"}
	s.begin("weigh", "func(dst *uint16, a, b *uint8, n int)", "sets dst = 3a + b, n >= 16.")
	dst, a, b, n := arg("dst"), arg("a"), arg("b"), arg("n")
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		v, w, t := YMM(), YMM(), YMM()
		VPMOVZXBW(Mem{Base: a, Index: i, Scale: 1}, v)
		VPMOVZXBW(Mem{Base: b, Index: i, Scale: 1}, w)
		VPADDW(v, v, t)
		VPADDW(t, v, v)
		VPADDW(w, v, v)
		VMOVDQU(v, Mem{Base: dst, Index: i, Scale: 2})
	})
	end()
}

// stretch writes the doubling of a row of colour sums.
func stretch() {
	s := &isa{name: "AVX2"}
	s.begin("stretch", "func(dst *uint8, sums *uint16, n int)",
		"writes 2n bytes from sums[-1] ... sums[n], n >= 16.")
	dst, sums, n := arg("dst"), arg("sums"), arg("n")
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		m, t, even, odd := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: sums, Index: i, Scale: 2}, m)
		VPADDW(m, m, t)
		VPADDW(t, m, m)
		VPADDW(Mem{Base: sums, Index: i, Scale: 2, Disp: -2}, m, even)
		VPADDW(Mem{Base: sums, Index: i, Scale: 2, Disp: 2}, m, odd)
		VPADDW(shorts(8), even, even)
		VPADDW(shorts(7), odd, odd)
		VPSRLW(Imm(4), even, even)
		VPSRLW(Imm(4), odd, odd)
		VPSLLW(Imm(8), odd, odd)
		VPOR(odd, even, even)
		VMOVDQU(even, Mem{Base: dst, Index: i, Scale: 2})
	})
	end()
}

// stretchRow writes the doubling of a row of samples.
func stretchRow() {
	s := &isa{name: "AVX2"}
	s.begin("stretchRow", "func(dst, src *uint8, n int)", "writes 2n bytes from src[-1] ... src[n], n >= 16.")
	dst, src, n := arg("dst"), arg("src"), arg("n")
	s.sweep(n, []int{16}, func(i reg.Register, _ int) {
		m, t, even, odd := YMM(), YMM(), YMM(), YMM()
		VPMOVZXBW(Mem{Base: src, Index: i, Scale: 1}, m)
		VPADDW(m, m, t)
		VPADDW(t, m, m)
		VPMOVZXBW(Mem{Base: src, Index: i, Scale: 1, Disp: -1}, even)
		VPMOVZXBW(Mem{Base: src, Index: i, Scale: 1, Disp: 1}, odd)
		VPADDW(m, even, even)
		VPADDW(m, odd, odd)
		VPADDW(shorts(1), even, even)
		VPADDW(shorts(2), odd, odd)
		VPSRLW(Imm(2), even, even)
		VPSRLW(Imm(2), odd, odd)
		VPSLLW(Imm(8), odd, odd)
		VPOR(odd, even, even)
		VMOVDQU(even, Mem{Base: dst, Index: i, Scale: 2})
	})
	end()
}
