package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Constants of SplitMix64, see vector_rand.go.
const (
	goldenGamma = 0x9e3779b97f4a7c15
	mixFirst    = 0xbf58476d1ce4e5b9
	mixSecond   = 0x94d049bb133111eb
)

// randomBits writes the kernel of DropoutBits, for AVX-512 alone: AVX2 has no
// product of 64-bit words.
func randomBits() {
	const signature = "func(dst *int32, n int, state uint64, last uint32)"
	declare("dropoutBitsVec", signature, "fills dst with bits that are one where 16 random bits are at most last; needs AVX-512.")
	b := &body{wide: true}
	dst, n := pointer("dst"), pointer("n")
	state, last := ZMM(), ZMM()
	VPBROADCASTQ(pointer("state"), state)
	VPBROADCASTW(Load(Param("last"), GP32()), last)
	gamma := uint64(goldenGamma) // a variable, since products wrap around
	// Lane i holds the state of random word i of the mask word in hand.
	lanes := GLOBL("vecGammas", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(uint64(i+1)*gamma))
	}
	VPADDQ(lanes, state, state)
	broadcast := func(v uint64) Op {
		r, z := GP64(), ZMM()
		MOVQ(U64(v), r)
		VPBROADCASTQ(r, z)
		return z
	}
	next, first, second := broadcast(8*gamma), broadcast(mixFirst), broadcast(mixSecond)
	Label("loop")
	TESTQ(n, n)
	JE(LabelRef("end"))
	z, t := ZMM(), ZMM()
	VPSRLQ(Imm(30), state, t)
	VPXORQ(state, t, z)
	VPMULLQ(first, z, z)
	VPSRLQ(Imm(27), z, t)
	VPXORQ(t, z, z)
	VPMULLQ(second, z, z)
	VPSRLQ(Imm(31), z, t)
	VPXORQ(t, z, z)
	kept := K()
	VPCMPUW(Imm(2), last, z, kept) // z <= last
	KMOVD(kept, Mem{Base: dst})
	VPADDQ(next, state, state)
	ADDQ(Imm(4), dst)
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("end")
	b.done()
}
