package main

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// source is what a packing function reads and makes of it.
type source int

const (
	asWords    source = iota // float32, as they are
	fromFloats               // float32, to pairs of bfloat16 along k
	fromHalves               // bfloat16, to pairs along k
)

// pairs writes a function that packs rows into pairs along k. It goes along a
// pair of rows of the source and writes a vector (or two) for each block of
// columns, so that memory is read in the order in which it lies.
func pairs(vectors int, from source) {
	size := floatSize
	if from == fromHalves {
		size = 2
	}
	name := fmt.Sprintf("gemm%sCols%d", []string{"Words", "PairsF32", "PairsBF16"}[from], vectors)
	TEXT(name, NOSPLIT, "func(dst *byte, dstBlock int, src0, src1 *byte, srcStep, srcBlock, pairs, blocks int, mask, last uint64)")
	Pragma("noescape")
	what := "to the pair of bfloat16 of column j in\nsrc0 + p*srcStep + b*srcBlock (lower half) and src1 likewise (upper half)."
	if from == asWords {
		what = "to the float32 of column j in\nsrc0 + p*srcStep + b*srcBlock; src1 is not used."
	}
	text := fmt.Sprintf("%s sets, for p < pairs, block b < blocks and column j < %d,\nword p*%d+j of dst + b*dstBlock ",
		name, 16*vectors, 16*vectors) +
		what + "\nColumns without a bit in mask (in last for the last block) are 0 and not read.\nStrides are in bytes."
	Doc(strings.Split(text, "\n")...)
	dst, dstBlock := Load(Param("dst"), GP64()), Load(Param("dstBlock"), GP64())
	src0, src1 := Load(Param("src0"), GP64()), Load(Param("src1"), GP64())
	srcStep, srcBlock := Load(Param("srcStep"), GP64()), Load(Param("srcBlock"), GP64())
	count, blocks := Load(Param("pairs"), GP64()), Load(Param("blocks"), GP64())
	inner := loadMasks(Load(Param("mask"), GP64()).(reg.GPVirtual), vectors)
	last := loadMasks(Load(Param("last"), GP64()).(reg.GPVirtual), vectors)
	low, high, both, order := reg.Z0, reg.Z1, reg.Z2, reg.Z3
	if from == fromFloats {
		VMOVDQU64(interleave(), order)
	}
	DECQ(blocks)
	d, s0, s1, b := GP64(), GP64(), GP64(), GP64()
	block := func(masks []reg.OpmaskVirtual) {
		for v := range vectors {
			m0, m1 := Mem{Base: s0, Disp: 16 * v * size}, Mem{Base: s1, Disp: 16 * v * size}
			to := Mem{Base: d, Disp: 64 * v}
			switch from {
			case asWords:
				VMOVUPS_Z(m0, masks[v], both)
			case fromFloats:
				VMOVUPS_Z(m0, masks[v], low)
				VMOVUPS_Z(m1, masks[v], high)
				evex.VCVTNE2PS2BF16(low, high, both)
				VPERMW(both, order, both)
			case fromHalves:
				VPMOVZXWD_Z(m0, masks[v], both)
				VPMOVZXWD_Z(m1, masks[v], high)
				VPSLLD(Imm(16), high, high)
				VPORD(high, both, both)
			}
			VMOVDQU64(both, to)
		}
	}
	Label("pair")
	MOVQ(dst, d)
	MOVQ(src0, s0)
	MOVQ(src1, s1)
	MOVQ(blocks, b)
	TESTQ(b, b)
	JE(LabelRef("last"))
	Label("block")
	block(inner)
	ADDQ(dstBlock, d)
	ADDQ(srcBlock, s0)
	ADDQ(srcBlock, s1)
	DECQ(b)
	JNZ(LabelRef("block"))
	Label("last")
	block(last)
	ADDQ(Imm(uint64(64*vectors)), dst)
	ADDQ(srcStep, src0)
	ADDQ(srcStep, src1)
	DECQ(count)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// wordsAVX2 writes the function of pairs that packs float32 as they are without AVX-512: what is loaded by a mask is 0
// where the mask is, and what it keeps off is not read.
func wordsAVX2(vectors int) {
	name := fmt.Sprintf("gemmWordsAVX2Cols%d", vectors)
	TEXT(name, NOSPLIT, "func(dst *byte, dstBlock int, src0, src1 *byte, srcStep, srcBlock, rows, blocks int, mask, last uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is gemmWordsCols%d with vectors of 8.", name, vectors))
	dst, dstBlock := Load(Param("dst"), GP64()), Load(Param("dstBlock"), GP64())
	src, srcStep, srcBlock := Load(Param("src0"), GP64()), Load(Param("srcStep"), GP64()), Load(Param("srcBlock"), GP64())
	rows, blocks := Load(Param("rows"), GP64()), Load(Param("blocks"), GP64())
	bits := GLOBL(fmt.Sprintf("gemmBits%d", vectors), RODATA|NOPTR)
	for i := range 8 * vectors {
		DATA(4*i, U32(1<<i))
	}
	masks := func(param string) []reg.VecVirtual {
		all, out := YMM(), make([]reg.VecVirtual, vectors)
		m, err := Param(param).Resolve()
		if err != nil {
			panic(err)
		}
		VPBROADCASTD(m.Addr, all)
		for v := range out {
			bit := YMM()
			out[v] = YMM()
			VMOVDQU(bits.Offset(32*v), bit)
			VPAND(bit, all, out[v])
			VPCMPEQD(bit, out[v], out[v])
		}
		return out
	}
	inner, last := masks("mask"), masks("last")
	DECQ(blocks)
	d, s, b := GP64(), GP64(), GP64()
	block := func(masks []reg.VecVirtual) {
		for v, mask := range masks {
			values := YMM()
			VMASKMOVPS(Mem{Base: s, Disp: 32 * v}, mask, values)
			VMOVUPS(values, Mem{Base: d, Disp: 32 * v})
		}
	}
	Label("row")
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(blocks, b)
	TESTQ(b, b)
	JE(LabelRef("last"))
	Label("block")
	block(inner)
	ADDQ(dstBlock, d)
	ADDQ(srcBlock, s)
	DECQ(b)
	JNZ(LabelRef("block"))
	Label("last")
	block(last)
	ADDQ(Imm(uint64(32*vectors)), dst)
	ADDQ(srcStep, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

var order *Mem

// interleave returns the indices for VPERMW that bring the two halves of a vector
// together word by word.
func interleave() Mem {
	if order == nil {
		m := GLOBL("gemmInterleave", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(i)|uint32(16+i)<<16))
		}
		order = &m
	}
	return *order
}
