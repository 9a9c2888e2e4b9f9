package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Constants of SplitMix64, see vector_rand.go.
const (
	goldenGamma = 0x9e3779b97f4a7c15
	mixFirst    = 0xbf58476d1ce4e5b9
	mixSecond   = 0x94d049bb133111eb
)

// randomBits writes the kernel of DropoutBits. A vector holds the states of as many
// random words as it has lanes of 64 bits; eight words make a mask word.
func randomBits() {
	gamma := uint64(goldenGamma) // a variable, since products wrap around
	gammas := GLOBL("vecGammas", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(uint64(i+1)*gamma))
	}
	kernel("dropoutBitsVec", "func(dst *int32, n int, state uint64, last uint32)",
		"fills dst with bits that are one where 16 random bits are at most last.", func(b *body) {
			dst, n := pointer("dst"), pointer("n")
			start := b.vec()
			word := XMM()
			MOVQ(pointer("state"), word)
			VPBROADCASTQ(word, start)
			MOVD(Load(Param("last"), GP32()), word)
			last := b.vec()
			VPBROADCASTW(word, last)
			states := make([]reg.VecVirtual, 64/(4*b.lanes))
			for i := range states {
				states[i] = b.vec()
				VPADDQ(gammas.Offset(4*b.lanes*i), start, states[i])
			}
			next, first, second := b.broadcast64(8*gamma), b.multiplier(mixFirst), b.multiplier(mixSecond)
			top, end := b.label("loop"), b.label("end")
			Label(top)
			TESTQ(n, n)
			JE(LabelRef(end))
			words := make([]reg.VecVirtual, len(states))
			for i, state := range states {
				z := b.xorShift(state, 30)
				z = b.xorShift(first.times(z), 27)
				words[i] = b.xorShift(second.times(z), 31)
				VPADDQ(next, state, state)
			}
			if b.wide {
				kept := K()
				VPCMPUW(Imm(2), last, words[0], kept) // at most last
				KMOVD(kept, Mem{Base: dst})
			} else {
				for _, w := range words { // the difference is zero if it saturates
					VPSUBUSW(last, w, w)
				}
				m, bits := b.vec(), GP32()
				zero := b.zero()
				VPCMPEQW(zero, words[0], words[0])
				VPCMPEQW(zero, words[1], words[1])
				VPACKSSWB(words[1], words[0], m) // in each half
				VPERMQ(Imm(0xd8), m, m)
				VPMOVMSKB(m, bits)
				MOVL(bits, Mem{Base: dst})
			}
			ADDQ(Imm(4), dst)
			DECQ(n)
			JMP(LabelRef(top))
			Label(end)
			b.done()
		})
}

// broadcast64 returns a register with v in every lane of 64 bits.
func (b *body) broadcast64(v uint64) reg.VecVirtual {
	r, x, z := GP64(), XMM(), b.vec()
	MOVQ(U64(v), r)
	MOVQ(r, x)
	VPBROADCASTQ(x, z)
	return z
}

// xorShift returns x ^ x>>n.
func (b *body) xorShift(x reg.VecVirtual, n uint64) reg.VecVirtual {
	z := b.vec()
	VPSRLQ(Imm(n), x, z)
	b.xor(x, z)
	return z
}

// xor sets z ^= x.
func (b *body) xor(x, z reg.VecVirtual) {
	if b.wide {
		VPXORQ(x, z, z)
	} else {
		VPXOR(x, z, z)
	}
}

// multiplier is a factor of 64 bits.
type multiplier struct {
	b           *body
	whole, high reg.VecVirtual
}

func (b *body) multiplier(v uint64) multiplier {
	m := multiplier{b: b, whole: b.broadcast64(v)}
	if !b.wide { // which has products of 32 bits only
		m.high = b.broadcast64(v >> 32)
	}
	return m
}

// times returns the low 64 bits of the products with x, which it may change.
func (m multiplier) times(x reg.VecVirtual) reg.VecVirtual {
	if m.b.wide {
		VPMULLQ(m.whole, x, x)
		return x
	}
	low, cross, high := m.b.vec(), m.b.vec(), m.b.vec()
	VPMULUDQ(m.whole, x, low)
	VPMULUDQ(m.high, x, cross)
	VPSRLQ(Imm(32), x, high)
	VPMULUDQ(m.whole, high, high)
	VPADDQ(high, cross, cross)
	VPSLLQ(Imm(32), cross, cross)
	VPADDQ(cross, low, low)
	return low
}
