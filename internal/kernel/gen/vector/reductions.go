package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// load64 reads the vector at p and converts it to float64; lanes beyond the end
// are zero.
func (s step) load64(p reg.Register) reg.VecVirtual {
	v := s.b.vec()
	if s.mask == nil {
		VCVTPS2PD(s.at(p), v)
	} else {
		VCVTPS2PD(s.load(p), v)
	}
	return v
}

// reductions writes the kernels that return one number. Sums are in float64, in
// which a product of two float32 is exact. Conversions to float64 are what limits
// them, and two of 256 bits take less time than one of 512 (half on Zen 4). A sum of
// products with one leaves the adders to the conversions.
func reductions() {
	const unroll = 8
	narrowKernel("sumVec", "func(x *float32, n int) float64", "returns the sum of x.", func(b *body) {
		x, sums := pointer("x"), b.zeros(unroll)
		one := b.vec()
		VCVTPS2PD(memory(math.Float32bits(1)), one)
		b.loop(pointer("n"), b.lanes/2, unroll, func(steps []step) {
			for _, s := range steps {
				VFMADD231PD(s.load64(x), one, sums[s.u])
			}
		})
		b.result(b.fold64(sums, VADDPD))
	})
	narrowKernel("sumSqVec", "func(x *float32, n int) float64", "returns the sum of x*x.", func(b *body) {
		x, sums := pointer("x"), b.zeros(unroll)
		b.loop(pointer("n"), b.lanes/2, unroll, func(steps []step) {
			for _, s := range steps {
				v := s.load64(x)
				VFMADD231PD(v, v, sums[s.u])
			}
		})
		b.result(b.fold64(sums, VADDPD))
	})
	narrowKernel("dotVec", "func(x, y *float32, n int) float64", "returns the sum of x*y.", func(b *body) {
		x, y, sums := pointer("x"), pointer("y"), b.zeros(unroll)
		b.loop(pointer("n"), b.lanes/2, unroll, func(steps []step) {
			for _, s := range steps {
				VFMADD231PD(s.load64(x), s.load64(y), sums[s.u])
			}
		})
		b.result(b.fold64(sums, VADDPD))
	})
	maximum()
}

// maximum writes the kernel of Max. The maximum instruction drops a NaN of its
// first source, so NaNs are looked for apart.
func maximum() {
	const (
		unroll   = 4
		minusInf = 0xff800000
		nan      = 0x7fc00000
	)
	kernel("maxVec", "func(x *float32, n int) float32", "returns the largest value of x, NaN if there is one.",
		func(b *body) {
			x := pointer("x")
			b.bits(minusInf)
			top := make([]reg.VecVirtual, unroll)
			for i := range top {
				top[i] = b.copy(b.cbits(minusInf))
			}
			// Ones where a NaN was seen.
			var seen reg.Register
			if b.wide {
				seen = K()
				KXORW(seen, seen, seen)
			} else {
				seen = b.zero()
			}
			unordered := func(v, w Op) {
				if b.wide {
					k := K()
					VCMPPS(Imm(3), v, w, k)
					KORW(k, seen, seen)
					return
				}
				t := b.vec()
				VCMPPS(Imm(3), v, w, t)
				VORPS(t, seen, seen)
			}
			b.loop(pointer("n"), b.lanes, unroll, func(steps []step) {
				values := make([]reg.VecVirtual, len(steps))
				for i, s := range steps {
					v := s.load(x)
					switch {
					case s.mask != nil && b.wide:
						v = b.copy(b.cbits(minusInf))
						VMOVUPS(s.at(x), s.mask, v)
					case s.mask != nil:
						VBLENDVPS(s.mask, v, b.copy(b.cbits(minusInf)), v)
					}
					VMAXPS(v, top[s.u], top[s.u])
					values[i] = v
				}
				for i := 0; i < len(values); i += 2 {
					unordered(values[i], values[min(i+1, len(values)-1)])
				}
			})
			bad, r := b.label("nan"), GP32()
			if b.wide {
				KORTESTW(seen, seen)
			} else {
				VMOVMSKPS(seen, r)
				TESTL(r, r)
			}
			JNE(LabelRef(bad))
			b.result(b.fold(top, VMAXPS))
			Label(bad)
			v := XMM()
			VMOVSS(memory(nan), v)
			b.result(v)
		})
}
