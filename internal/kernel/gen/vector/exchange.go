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

// maxima writes the kernel of MaxColumns.
func maxima() {
	kernel("maxColumnsVec", "func(top *float32, at *int32, x *float32, n int, place int32)",
		"sets top to x and at to place where x > top or x is NaN.", func(b *body) {
			top, at, x := pointer("top"), pointer("at"), pointer("x")
			p, err := Param("place").Resolve()
			if err != nil {
				panic(err)
			}
			place := b.vec()
			VBROADCASTSS(p.Addr, place)
			b.each(pointer("n"), 2, func(s step) {
				t, i, v := s.load(top), s.load(at), s.load(x)
				const greater, unordered = 0x1e, 0x03
				if b.wide {
					larger, nan := K(), K()
					VCMPPS(Imm(greater), t, v, larger)
					VCMPPS(Imm(unordered), v, v, nan)
					KORW(nan, larger, larger)
					VBLENDMPS(v, t, larger, t)
					VBLENDMPS(place, i, larger, i)
				} else {
					larger, nan := b.vec(), b.vec()
					VCMPPS(Imm(greater), t, v, larger)
					VCMPPS(Imm(unordered), v, v, nan)
					VORPS(nan, larger, larger)
					VBLENDVPS(larger, v, t, t)
					VBLENDVPS(larger, place, i, i)
				}
				s.store(t, top)
				s.store(i, at)
			})
			b.done()
		})
}
