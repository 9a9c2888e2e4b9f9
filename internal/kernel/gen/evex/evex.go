// Package evex has the instructions of AVX-512 BF16 for generators of assembly.
//
// The Go assembler does not know them, so their bytes are written out. All work on 512-bit registers in the map 0F38,
// with W 0, without a mask (Intel 64 manual, volume 2, section 2.7: Intel AVX-512 encoding). Registers are physical,
// since their numbers are part of the bytes.
package evex

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Mandatory prefixes as EVEX.pp stands for them.
const (
	prefixF3 = 2
	prefixF2 = 3
)

// evex returns the six bytes of an instruction whose operands are registers of
// these numbers: dst in ModRM.reg, first in EVEX.vvvv, second in ModRM.rm.
func evex(prefix, opcode, dst, first, second int) [6]byte {
	// Bits of register numbers are stored inverted, except those in ModRM.
	not := func(x, bit int) int { return ^x >> bit & 1 }
	const map0F38, full = 2, 2 // mmm and L'L
	return [6]byte{
		0x62,
		byte(not(dst, 3)<<7 | not(second, 4)<<6 | not(second, 3)<<5 | not(dst, 4)<<4 | map0F38),
		byte(^first&15<<3 | 1<<2 | prefix),
		byte(full<<5 | not(first, 4)<<3),
		byte(opcode),
		byte(3<<6 | dst&7<<3 | second&7),
	}
}

// emit writes the bytes and tells avo which registers they read and write.
func emit(b [6]byte, inputs []operand.Op, output operand.Op) {
	Instruction(&ir.Instruction{
		Opcode:   "LONG",
		Operands: []operand.Op{operand.U32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)},
		Inputs:   inputs,
		Outputs:  []operand.Op{output},
	})
	Instruction(&ir.Instruction{
		Opcode:   "WORD",
		Operands: []operand.Op{operand.U16(uint16(b[4]) | uint16(b[5])<<8)},
		Inputs:   inputs,
		Outputs:  []operand.Op{output},
	})
}

// number returns the number of a vector register.
func number(r reg.VecPhysical) int { return int(r.PhysicalIndex()) }

// VDPBF16PS adds to each float32 of sum the two products of the pairs of bfloat16
// in x and y (EVEX.512.F3.0F38.W0 52 /r).
func VDPBF16PS(x, y, sum reg.VecPhysical) {
	comment("VDPBF16PS", x, y, sum)
	emit(evex(prefixF3, 0x52, number(sum), number(y), number(x)), []operand.Op{x, y, sum}, sum)
}

// VCVTNE2PS2BF16 sets the lower half of dst to the float32 values of low and the
// upper half to those of high as bfloat16 (EVEX.512.F2.0F38.W0 72 /r).
func VCVTNE2PS2BF16(low, high, dst reg.VecPhysical) {
	comment("VCVTNE2PS2BF16", low, high, dst)
	emit(evex(prefixF2, 0x72, number(dst), number(high), number(low)), []operand.Op{low, high}, dst)
}

// VCVTNEPS2BF16 sets the lower half of dst to the float32 values of x as bfloat16
// (EVEX.512.F3.0F38.W0 72 /r).
func VCVTNEPS2BF16(x, dst reg.VecPhysical) {
	comment("VCVTNEPS2BF16", x, dst)
	emit(evex(prefixF3, 0x72, number(dst), 0, number(x)), []operand.Op{x}, dst)
}

// comment says in the assembly what the bytes after it are.
func comment(name string, registers ...reg.VecPhysical) {
	s := name
	for i, r := range registers {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" Z%d", number(r))
	}
	Comment(s)
}
