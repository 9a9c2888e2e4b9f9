package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bitSums writes the kernel of DotBits: sums of the bytes of y at the bits of rows. With AVX-512 64 bits of a row are a
// mask of bytes of y. With AVX2 a byte for each of 32 bits is compared with its bit. Four rows pass at a time, so that
// y is read once for them.
func bitSums() {
	places := GLOBL("vecBitPlaces", RODATA|NOPTR) // the byte of each of 32 bits
	for i := range 4 {
		DATA(8*i, U64(0x0101010101010101*uint64(i)))
	}
	bits := GLOBL("vecBits", RODATA|NOPTR) // the bit in that byte
	for i := range 4 {
		DATA(8*i, U64(0x8040201008040201))
	}
	const together = 4
	kernel("dotBitsVec", "func(dst *int32, x *uint8, y *int8, rows int, n int)",
		"sets dst to the sums of y at the bits of rows of x of n bytes, a multiple of 8.", func(b *body) {
			dst, x, y := pointer("dst"), pointer("x"), pointer("y")
			left, n := pointer("rows"), pointer("n")
			bytes, words := b.vec(), b.vec()
			VBROADCASTSS(memory(0x01010101), bytes)
			VBROADCASTSS(memory(0x00010001), words)
			for _, count := range []int{together, 1} {
				top, end, column := b.label("rows"), b.label("end"), b.label("column")
				Label(top)
				CMPQ(left, Imm(uint64(count)))
				JL(LabelRef(end))
				at := make([]reg.Register, count)
				for r := range at {
					at[r] = GP64()
					if r == 0 {
						MOVQ(x, at[r])
						continue
					}
					LEAQ(Mem{Base: at[r-1], Index: n, Scale: 1}, at[r])
				}
				sums := b.zeros(count)
				i := GP64()
				XORQ(i, i)
				Label(column)
				values := b.copy(Mem{Base: y, Index: i, Scale: 8})
				for r := range at {
					t, row := b.vec(), Mem{Base: at[r], Index: i, Scale: 1}
					if b.wide {
						k := K()
						KMOVQ(row, k)
						VMOVDQU8_Z(values, k, t)
					} else {
						VPBROADCASTD(row, t)
						VPSHUFB(places, t, t)
						VPAND(bits, t, t)
						VPCMPEQB(bits, t, t)
						VPAND(values, t, t)
					}
					VPMADDUBSW(t, bytes, t)
					VPMADDWD(words, t, t)
					VPADDD(t, sums[r], sums[r])
				}
				ADDQ(Imm(uint64(b.lanes/2)), i)
				CMPQ(i, n)
				JL(LabelRef(column))
				for r := range at {
					VMOVD(b.fold(sums[r:r+1], VPADDD), Mem{Base: dst, Disp: r * 4})
				}
				LEAQ(Mem{Base: at[count-1], Index: n, Scale: 1}, x)
				ADDQ(Imm(uint64(4*count)), dst)
				SUBQ(Imm(uint64(count)), left)
				JMP(LabelRef(top))
				Label(end)
			}
			b.done()
		})
}
