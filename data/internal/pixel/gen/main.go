// Command gen writes the assembly of package pixel. Every kernel is a function of
// its own for AVX2 and, where it pays, for AVX-512; package pixel chooses.
//
// Run it by go generate in data/internal/pixel.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, wide := range []bool{false, true} {
		s := &isa{wide: wide, name: "AVX2", lanes: 8}
		if wide {
			s.name, s.lanes = "AVX512", 16
		}
		s.filterRows()
		s.mixRows()
		s.shrinkRow()
		s.normalize()
		s.sharpen()
		s.box(3)
		s.box(5)
		s.saturate()
		s.lumaSum()
		s.shade()
	}
	yCbCr()
	weigh()
	stretch()
	stretchRow()
	warp()
	inverseDCT()
	Generate()
}

// isa is an instruction set: vectors of lanes 32-bit values.
type isa struct {
	wide   bool
	name   string
	lanes  int
	labels int
}

func (s *isa) begin(name, signature, doc string) {
	s.labels = 0
	TEXT(name+s.name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + s.name + " " + doc)
}

func (s *isa) label(l string) string {
	s.labels++
	return fmt.Sprintf("%s%d", l, s.labels)
}

func (s *isa) vec() reg.VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

func arg(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

func end() {
	VZEROUPPER()
	RET()
}

// words returns 16 equal 32-bit values in memory.
func words(v uint32) Mem {
	name := fmt.Sprintf("words%08x", v)
	if m, ok := stored[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(v))
	}
	stored[name] = m
	return m
}

// shorts returns 16 equal 16-bit values in memory.
func shorts(v uint16) Mem { return words(uint32(v) | uint32(v)<<16) }

// bytes16 returns a vector of 16 bytes in memory; -1 stands for 0x80, which makes
// VPSHUFB write a zero.
func bytes16(name string, v [16]int) Mem {
	if m, ok := stored[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i, b := range v {
		DATA(i, U8(uint8(b&0x7f|b>>8&0x80)))
	}
	stored[name] = m
	return m
}

var stored = map[string]Mem{}

// sweep calls body for i = 0, count, 2 count ... while whole groups are left, for
// each of counts, largest first; what then remains is done by one group of the
// last count that ends at n and overlaps the one before. n must be at least that.
func (s *isa) sweep(n reg.Register, counts []int, body func(i reg.Register, count int)) {
	i, left := GP64(), GP64()
	XORQ(i, i)
	for k, count := range counts {
		last := k == len(counts)-1
		top, next := s.label("sweep"), s.label("next")
		Label(top)
		MOVQ(n, left)
		SUBQ(i, left)
		CMPQ(left, Imm(uint64(count)))
		JL(LabelRef(next))
		body(i, count)
		ADDQ(Imm(uint64(count)), i)
		JMP(LabelRef(top))
		Label(next)
		if last {
			done := s.label("done")
			TESTQ(left, left)
			JE(LabelRef(done))
			MOVQ(n, i)
			SUBQ(Imm(uint64(count)), i)
			JMP(LabelRef(top))
			Label(done)
		}
	}
}

// bytesOf writes the low bytes of two vectors of 8 (AVX2) or one of 16 (AVX-512)
// 32-bit values, cut to 0..255, to a register of 16 bytes.
func (s *isa) bytesOf(v ...reg.VecVirtual) reg.VecVirtual {
	out := XMM()
	if s.wide {
		zero := ZMM()
		VPXORD(zero, zero, zero)
		VPMAXSD(zero, v[0], v[0])
		VPMOVUSDB(v[0], out)
		return out
	}
	// The packs work on halves: 0-3 8-11 | 4-7 12-15.
	t := YMM()
	VPACKSSDW(v[1], v[0], t)
	VPERMQ(Imm(0xd8), t, t)
	high := XMM()
	VEXTRACTI128(Imm(1), t, high)
	VPACKUSWB(high, t.AsX(), out)
	return out
}

// groups is the number of vectors that hold 16 values.
func (s *isa) groups() int { return 16 / s.lanes }
