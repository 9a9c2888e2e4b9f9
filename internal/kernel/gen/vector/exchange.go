package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exchange writes the kernel of CompareExchange.
func exchange() {
	kernel("exchangeVec", "func(a, b *float32, ia, ib *int32, n int)",
		"swaps a with b and ia with ib where b > a, or b = a and ib < ia.", func(b *body) {
			pa, pb, pia, pib := pointer("a"), pointer("b"), pointer("ia"), pointer("ib")
			b.each(pointer("n"), 2, func(s step) {
				x, y, i, j := s.load(pa), s.load(pb), s.load(pia), s.load(pib)
				const greater, equal = 0x1e, 0x00                       // ordered: a NaN stays
				var choose func(from, to reg.VecVirtual) reg.VecVirtual // from where they are swapped
				if b.wide {
					swap, same := K(), K()
					VCMPPS(Imm(greater), x, y, swap)
					VCMPPS(Imm(equal), x, y, same)
					VPCMPD(Imm(1), i, j, same, same) // ib < ia
					KORW(swap, same, swap)
					choose = func(from, to reg.VecVirtual) reg.VecVirtual {
						v := b.vec()
						VBLENDMPS(from, to, swap, v)
						return v
					}
				} else {
					swap, same, before := b.vec(), b.vec(), b.vec()
					VCMPPS(Imm(greater), x, y, swap)
					VCMPPS(Imm(equal), x, y, same)
					VPCMPGTD(j, i, before) // ia > ib
					VANDPS(before, same, same)
					VORPS(same, swap, swap)
					choose = func(from, to reg.VecVirtual) reg.VecVirtual {
						v := b.vec()
						VBLENDVPS(swap, from, to, v)
						return v
					}
				}
				s.store(choose(y, x), pa)
				s.store(choose(x, y), pb)
				s.store(choose(j, i), pia)
				s.store(choose(i, j), pib)
			})
			b.done()
		})
}
