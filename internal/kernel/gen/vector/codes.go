package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// codes writes the kernel of DotCodes: products of rows of bytes with one row of words. Bytes
// are widened as they are loaded. Four rows pass at a time, so that words of y are read once
// for them. Rows from memory are what limits it, for which AVX2 is enough.
func codes() {
	const together = 4
	narrowKernel("dotCodesVec", "func(dst *int32, x *int8, y *int16, rows int, n int)",
		"sets dst to the products of rows of x with y; n is a multiple of 16.", func(b *body) {
			dst, x, y := pointer("dst"), pointer("x"), pointer("y")
			left, n := pointer("rows"), pointer("n")
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
				words := b.copy(Mem{Base: y, Index: i, Scale: 2})
				for r := range at {
					t := b.vec()
					VPMOVSXBW(Mem{Base: at[r], Index: i, Scale: 1}, t)
					VPMADDWD(words, t, t)
					VPADDD(t, sums[r], sums[r])
				}
				ADDQ(Imm(16), i)
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
