package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// argMax writes the two halves of ArgMax.
func argMax() {
	const unroll = 4
	kernel("topVec", "func(x *float32, n int) float32",
		"returns the largest value of x that is no NaN, -Inf if there is none.", func(b *body) {
			x, top := pointer("x"), b.minusInf(unroll)
			b.loop(pointer("n"), b.lanes, unroll, func(steps []step) {
				for _, s := range steps {
					s.highest(s.load(x), top[s.u])
				}
			})
			b.result(b.fold(top, VMAXPS))
		})
	kernel("findVec", "func(x *float32, n int, v float32) int", "returns the first index of v in x, which holds it.",
		func(b *body) {
			x, v, r := pointer("x"), b.scalar("v"), GP32()
			found := b.label("found")
			var i reg.Register
			b.each(pointer("n"), 1, func(s step) {
				i = s.i
				if b.wide {
					k := K()
					VCMPPS(Imm(0), v, s.load(x), k)
					KMOVW(k, r)
				} else {
					t := s.load(x)
					VCMPPS(Imm(0), v, t, t)
					VMOVMSKPS(t, r)
				}
				TESTL(r, r)
				JNE(LabelRef(found))
			})
			// What is beyond the end comes after the value itself.
			Label(found)
			BSFL(r, r)
			at := r.As64()
			ADDQ(i, at)
			VZEROUPPER()
			Store(at, ReturnIndex(0))
			RET()
		})
}
