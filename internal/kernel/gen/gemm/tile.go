package main

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in tileArgs of gemm_builtin_amd64.go.
const (
	offK     = 0
	offA     = 8
	offARow  = 16
	offAK    = 24
	offB     = 32
	offBK    = 40
	offC     = 48
	offCRow  = 56
	offAlpha = 64
	offAdd   = 68
	offMask  = 72
	offNext  = 80
	// Of products of codes alone.
	offScales = 88
	offSums   = 96
	offRows   = 104
	offZeros  = 112
)

// set is an instruction set with its own tiles.
type set struct {
	name  string
	rows  int // largest height
	lanes int // float32 values in a vector
	wide  bool
	of    values
}

// values are what a word of A and of B holds: a float32, or several values along k in its place.
type values int

const (
	floats values = iota
	halves        // two bfloat16
	bytes         // four codes: bytes without a sign in A, with one in B
	shorts        // two codes of 16 bits
)

// vectors returns a function that returns a new register at each call. The
// instructions of bfloat16 need registers whose numbers are known.
func (s set) vectors() func() reg.VecPhysical {
	numbers := []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9,
		reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21,
		reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}
	next := 0
	return func() reg.VecPhysical {
		r := numbers[next]
		next++
		if s.wide {
			return r
		}
		return r.AsY().(reg.VecPhysical)
	}
}

// aheadTerms is how many terms before its use a term of B is asked for, which the processor's own prefetch does late
// where panels come from the level-2 cache or from memory.
const aheadTerms = 40

// tile writes a function that sets a tile of rows x cols vectors of C to
// alpha*A*B, or adds it. With AVX-512 the mask keeps it off columns that are not
// there; without, the tile must be whole.
func (s set) tile(rows, cols int) {
	wide, lanes, vector := s.wide, s.lanes, s.vectors()
	TEXT(fmt.Sprintf("gemmTile%sRows%dCols%d", s.name, rows, cols), NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("gemmTile%sRows%dCols%d multiplies %d rows of A by %d columns of B; t points to a tileArgs.",
		s.name, rows, cols, rows, cols*lanes))
	t := Load(Param("t"), GP64())
	field := func(off int) Mem { return Mem{Base: t, Disp: off} }
	get := func(off int) reg.GPVirtual { r := GP64(); MOVQ(field(off), r); return r }

	k, b, bk, ak, ar := get(offK), get(offB), get(offBK), get(offAK), get(offARow)
	var masks []reg.OpmaskVirtual
	if wide {
		masks = loadMasks(get(offMask), cols)
	}
	// Row i is at base i/4 plus 0, 1, 2 or 3 strides.
	ar3 := GP64()
	LEAQ(Mem{Base: ar, Index: ar, Scale: 2}, ar3)
	bases := []reg.GPVirtual{get(offA)}
	for i := 4; i < rows; i += 4 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: ar, Scale: 4}, next)
		bases = append(bases, next)
	}
	rowMem := func(bases []reg.GPVirtual, stride, stride3 reg.GPVirtual, i int) Mem {
		m := Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = stride3, 1
		}
		return m
	}

	sums := make([]reg.VecPhysical, rows*cols)
	for i := range sums {
		sums[i] = vector()
		// Not VXORPS, which has a 512-bit form in AVX-512 DQ only.
		if wide {
			VPXORD(sums[i], sums[i], sums[i])
		} else {
			VXORPS(sums[i], sums[i], sums[i])
		}
	}
	bv := make([]reg.VecPhysical, cols)
	for j := range bv {
		bv[j] = vector()
	}
	av := vector()
	var product reg.VecPhysical
	if s.of == shorts {
		product = vector()
	}
	var far, next reg.GPVirtual
	term := func(whole bool) {
		if next != nil {
			PREFETCHT0(Mem{Base: next})
			ADDQ(Imm(floatSize), next)
		}
		if far != nil {
			for j := range cols {
				PREFETCHT0(Mem{Base: b, Index: far, Scale: 1, Disp: j * lanes * floatSize})
			}
		}
		for j := range bv {
			m := Mem{Base: b, Disp: j * lanes * floatSize}
			if wide && !whole {
				VMOVUPS_Z(m, masks[j], bv[j])
			} else {
				VMOVUPS(m, bv[j])
			}
		}
		for i := range rows {
			VBROADCASTSS(rowMem(bases, ar, ar3, i), av)
			for j := range bv {
				switch sum := sums[i*cols+j]; s.of {
				case floats:
					VFMADD231PS(bv[j], av, sum)
				case halves:
					evex.VDPBF16PS(bv[j], av, sum)
				case bytes:
					VPDPBUSD(bv[j], av, sum)
				case shorts:
					VPMADDWD(bv[j], av, product)
					VPADDD(product, sum, sum)
				}
			}
		}
		for _, base := range bases {
			ADDQ(ak, base)
		}
		ADDQ(bk, b)
	}
	// The first terms ask for the rows of C, one each: what is not in the cache
	// arrives while the others are summed.
	loop := fmt.Sprintf("loop%s%dx%d", s.name, rows, cols)
	first, stored := "first"+loop, "done"+loop
	ahead, stride, left := get(offC), get(offCRow), GP64()
	MOVQ(U32(rows), left)
	CMPQ(left, k)
	CMOVQGT(k, left)
	SUBQ(left, k)
	Label(first)
	for j := range cols {
		if j*lanes*floatSize%64 == 0 {
			PREFETCHT0(Mem{Base: ahead, Disp: j * lanes * floatSize})
		}
	}
	term(false)
	ADDQ(stride, ahead)
	DECQ(left)
	JNZ(LabelRef(first))
	TESTQ(k, k)
	JZ(LabelRef(stored))
	terms := func(label string, whole bool) {
		Label(label)
		term(whole)
		DECQ(k)
		JNZ(LabelRef(label))
	}
	if wide {
		far = GP64()
		IMUL3Q(Imm(aheadTerms), bk, far)
		// Whole vectors are read without the mask: on Intel's processors a load with one takes the place of a product.
		whole := "whole" + loop
		CMPL(field(offMask), I32(int32(uint32(1<<(cols*lanes)-1))))
		JEQ(LabelRef(whole))
		terms(loop, false)
		JMP(LabelRef(stored))
		Label(whole)
		if s.of == floats {
			// Each term asks for a word of what is read after this tile: calls beside the products would wait for the
			// memory. A loop of its own, since that takes time where there is nothing to ask for.
			asking := "asking" + loop
			CMPQ(field(offNext), Imm(0))
			JEQ(LabelRef("quiet" + loop))
			next = get(offNext)
			terms(asking, true)
			next = nil
			JMP(LabelRef(stored))
		}
		terms("quiet"+loop, true)
	} else {
		terms(loop, false)
	}
	Label(stored)
	if s.of == bytes || s.of == shorts {
		used := append([]reg.VecPhysical{av}, bv...)
		s.dequantize(get, cols, sums, func() (r reg.VecPhysical) {
			if len(used) == 0 {
				return vector()
			}
			r, used = used[0], used[1:]
			return r
		}, masks)
		return
	}

	c, cr := get(offC), get(offCRow)
	alpha := av
	VBROADCASTSS(field(offAlpha), alpha)
	add := fmt.Sprintf("add%s%dx%d", s.name, rows, cols)
	CMPL(field(offAdd), Imm(0))
	JNE(LabelRef(add))
	store := func(adding bool) {
		for i := range rows {
			for j := range cols {
				m, sum := Mem{Base: c, Disp: j * lanes * floatSize}, sums[i*cols+j]
				switch {
				case wide && adding:
					VMOVUPS_Z(m, masks[j], bv[j])
					VFMADD231PS(alpha, sum, bv[j])
					VMOVUPS(bv[j], masks[j], m)
				case wide:
					VMULPS(alpha, sum, sum)
					VMOVUPS(sum, masks[j], m)
				case adding:
					VFMADD213PS(m, alpha, sum)
					VMOVUPS(sum, m)
				default:
					VMULPS(alpha, sum, sum)
					VMOVUPS(sum, m)
				}
			}
			if i+1 < rows {
				ADDQ(cr, c)
			}
		}
		VZEROUPPER()
		RET()
	}
	store(false)
	Label(add)
	store(true)
}

// loadMasks splits the 32 bits of mask into one mask register a vector.
func loadMasks(mask reg.GPVirtual, cols int) []reg.OpmaskVirtual {
	out := make([]reg.OpmaskVirtual, cols)
	for j := range out {
		out[j] = K()
		if j > 0 {
			SHRQ(Imm(16), mask)
		}
		KMOVW(mask.As32(), out[j])
	}
	return out
}
