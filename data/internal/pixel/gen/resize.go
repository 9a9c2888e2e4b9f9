package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const coefBits = 22

// filterRows writes the horizontal filter. A program (see rowProgram) is a list of
// blocks of lanes neighbouring bytes of the output, each with its place, its
// number of taps, the index of every lane's byte in a window of the source, and
// the weights of all lanes tap by tap. From tap to tap the window moves on by one
// pixel, so the indices stay.
//
// AVX-512 has one window of 64 bytes a block, AVX2 one of 16 bytes per half.
func (s *isa) filterRows() {
	s.begin("filterRows", "func(dst0, dst1, src0, src1 *uint8, program *int32, blocks int)",
		"runs a row program on two rows.")
	dst := [2]reg.GPVirtual{arg("dst0"), arg("dst1")}
	src := [2]reg.GPVirtual{arg("src0"), arg("src1")}
	p, blocks := arg("program"), arg("blocks")
	half := s.vec()
	VMOVDQUs(s, words(1<<(coefBits-1)), half)
	var k reg.Register
	if s.wide {
		bits := GP64()
		MOVQ(Imm(0x1111111111111111), bits)
		k = K()
		KMOVQ(bits, k)
	}
	base0, base1, n, at := GP64(), GP64(), GP64(), GP64()
	Label("block")
	MOVLQSX(Mem{Base: p}, base0)
	MOVLQSX(Mem{Base: p, Disp: 4}, base1)
	MOVLQSX(Mem{Base: p, Disp: 8}, n)
	MOVLQSX(Mem{Base: p, Disp: 12}, at)
	index := s.vec()
	VMOVDQUs(s, Mem{Base: p, Disp: 16}, index)
	ADDQ(Imm(uint64(16+4*s.lanes)), p)
	sum := [2]reg.VecVirtual{s.vec(), s.vec()}
	for r := range sum {
		VMOVDQAs(s, half, sum[r])
	}
	Label("tap")
	weights := s.vec()
	VMOVDQUs(s, Mem{Base: p}, weights)
	for r := range sum {
		v := s.vec()
		if s.wide {
			VMOVDQU8(Mem{Base: src[r], Index: base0, Scale: 1}, v)
			VPERMB_Z(v, index, k, v)
		} else {
			VMOVDQU(Mem{Base: src[r], Index: base0, Scale: 1}, v.AsX())
			VINSERTI128(Imm(1), Mem{Base: src[r], Index: base1, Scale: 1}, v, v)
			VPSHUFB(index, v, v)
		}
		VPMULLD(weights, v, v)
		VPADDD(v, sum[r], sum[r])
	}
	ADDQ(Imm(3), base0)
	if !s.wide {
		ADDQ(Imm(3), base1)
	}
	ADDQ(Imm(uint64(4*s.lanes)), p)
	DECQ(n)
	JNE(LabelRef("tap"))
	for r := range sum {
		VPSRAD(Imm(coefBits), sum[r], sum[r])
		s.storeBytes(sum[r], Mem{Base: dst[r], Index: at, Scale: 1})
	}
	DECQ(blocks)
	JNE(LabelRef("block"))
	end()
}

// storeBytes stores lanes values, cut to bytes.
func (s *isa) storeBytes(v reg.VecVirtual, m Mem) {
	if s.wide {
		VMOVDQU(s.bytesOf(v), m)
		return
	}
	high := XMM()
	VEXTRACTI128(Imm(1), v, high)
	VPACKSSDW(high, v.AsX(), high)
	VPACKUSWB(high, high, high)
	VMOVQ(high, m)
}

// mixRows writes the vertical filter.
func (s *isa) mixRows() {
	s.begin("mixRows", "func(dst, src *uint8, n, stride int, weights *int32, taps int)",
		"sets dst to the weighted sum of taps rows of n bytes; n must be a vector or more.")
	dst, src, n, stride, weights, taps := arg("dst"), arg("src"), arg("n"), arg("stride"), arg("weights"), arg("taps")
	half := s.vec()
	VMOVDQUs(s, words(1<<(coefBits-1)), half)
	p, k, left := GP64(), GP64(), GP64()
	s.sweep(n, []int{4 * s.lanes, s.lanes}, func(i reg.Register, count int) {
		sums := make([]reg.VecVirtual, count/s.lanes)
		for j := range sums {
			sums[j] = s.vec()
			VMOVDQAs(s, half, sums[j])
		}
		LEAQ(Mem{Base: src, Index: i, Scale: 1}, p)
		MOVQ(weights, k)
		MOVQ(taps, left)
		top := s.label("tap")
		Label(top)
		w := s.vec()
		VPBROADCASTD(Mem{Base: k}, w)
		for j := range sums {
			v := s.vec()
			VPMOVZXBD(Mem{Base: p, Disp: j * s.lanes}, v)
			VPMULLD(w, v, v)
			VPADDD(v, sums[j], sums[j])
		}
		ADDQ(stride, p)
		ADDQ(Imm(4), k)
		DECQ(left)
		JNE(LabelRef(top))
		for j := range sums {
			VPSRAD(Imm(coefBits), sums[j], sums[j])
			s.storeBytes(sums[j], Mem{Base: dst, Index: i, Scale: 1, Disp: j * s.lanes})
		}
	})
	end()
}

// VMOVDQUs is an unaligned move in the encoding of the instruction set.
func VMOVDQUs(s *isa, from, to Op) {
	if s.wide {
		VMOVDQU32(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// VMOVDQAs is a move between registers.
func VMOVDQAs(s *isa, from, to Op) {
	if s.wide {
		VMOVDQA32(from, to)
	} else {
		VMOVDQA(from, to)
	}
}

// shrinkRow writes the horizontal filter for strong shrinking, where a lane is a
// byte of the source: 4 pixels a step with AVX-512, 2 with AVX2, in the first 12
// (6) lanes. A program holds, for each pixel of the output, where its bytes begin,
// the number of steps, and their weights.
func (s *isa) shrinkRow() {
	s.begin("shrinkRow", "func(dst, src *uint8, program *int32, n int)",
		"runs a shrink program for n pixels; it reads 4 bytes and writes 1 byte more than the row has.")
	dst, src, p, n := arg("dst"), arg("src"), arg("program"), arg("n")
	half := XMM()
	VMOVDQU(words(1<<(coefBits-1)), half)
	third := YMM()
	if !s.wide {
		VMOVDQU(lanesFrom3(), third)
	}
	at, steps := GP64(), GP64()
	Label("pixel")
	MOVLQSX(Mem{Base: p}, at)
	MOVLQSX(Mem{Base: p, Disp: 4}, steps)
	ADDQ(Imm(8), p)
	ADDQ(src, at)
	sum := s.vec()
	if s.wide {
		VPXORD(sum, sum, sum)
	} else {
		VPXOR(sum, sum, sum)
	}
	Label("step")
	v := s.vec()
	VPMOVZXBD(Mem{Base: at}, v)
	VPMULLD(Mem{Base: p}, v, v)
	VPADDD(v, sum, sum)
	ADDQ(Imm(uint64(3*s.lanes/4)), at)
	ADDQ(Imm(uint64(4*s.lanes)), p)
	DECQ(steps)
	JNE(LabelRef("step"))
	t := s.vec()
	if s.wide {
		VALIGND(Imm(6), sum, sum, t)
		VPADDD(t, sum, sum)
		VALIGND(Imm(3), sum, sum, t)
	} else {
		VPERMD(sum, third, t)
	}
	x := sum.AsX()
	VPADDD(t.AsX(), x, x)
	VPADDD(half, x, x)
	VPSRAD(Imm(coefBits), x, x)
	VPACKSSDW(x, x, x)
	VPACKUSWB(x, x, x)
	VMOVD(x, Mem{Base: dst})
	ADDQ(Imm(3), dst)
	DECQ(n)
	JNE(LabelRef("pixel"))
	end()
}

// lanesFrom3 is the index that moves lane 3 to lane 0.
func lanesFrom3() Mem {
	if m, ok := stored["from3"]; ok {
		return m
	}
	m := GLOBL("from3", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(uint32((i+3)%8)))
	}
	stored["from3"] = m
	return m
}
