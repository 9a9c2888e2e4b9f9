// Package amx has the instructions on tiles of bfloat16 (AMX-TILE, AMX-BF16) for generators of assembly.
//
// The Go assembler does not know them, so their bytes are written out. All are VEX encoded in the map 0F38 with W 0 and
// L 0 (Intel 64 manual, volume 2, sections 2.3 and 5). Registers of addresses are physical, since their numbers are
// part of the bytes.
package amx

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Mandatory prefixes as VEX.pp stands for them.
const (
	prefixNone = 0
	prefix66   = 1
	prefixF3   = 2
	prefixF2   = 3
)

// Rows is the address of rows of a tile: row i begins at Base + i*Stride + Disp, with Disp in [-128, 127].
type Rows struct {
	Base, Stride reg.GPPhysical
	Disp         int
}

// vex returns the first four bytes of an instruction. r, x and b are the numbers of the registers in ModRM.reg,
// SIB.index and ModRM.rm or SIB.base, of which bit 3 goes here, and v that of the third register.
func vex(prefix, opcode, r, x, b, v int) []byte {
	not := func(n int) int { return ^n >> 3 & 1 }
	const map0F38 = 2
	return []byte{0xc4, byte(not(r)<<7 | not(x)<<6 | not(b)<<5 | map0F38), byte(^v&15<<3 | prefix), byte(opcode)}
}

// memory returns the bytes of an instruction on a tile and rows in memory.
func memory(prefix, opcode, tile int, m Rows) []byte {
	base, index := int(m.Base.PhysicalIndex()), int(m.Stride.PhysicalIndex())
	const disp8, sib = 1, 4
	return append(vex(prefix, opcode, tile, index, base, 0), byte(disp8<<6|tile<<3|sib), byte(index&7<<3|base&7),
		byte(int8(m.Disp)))
}

// emit writes the bytes, and tells avo which registers they read.
func emit(text string, bytes []byte, inputs ...operand.Op) {
	Comment(text)
	for len(bytes) > 0 {
		i := &ir.Instruction{Inputs: inputs}
		switch {
		case len(bytes) >= 4:
			i.Opcode, i.Operands = "LONG",
				[]operand.Op{operand.U32(uint32(bytes[0]) | uint32(bytes[1])<<8 | uint32(bytes[2])<<16 | uint32(bytes[3])<<24)}
			bytes = bytes[4:]
		case len(bytes) >= 2:
			i.Opcode, i.Operands = "WORD", []operand.Op{operand.U16(uint16(bytes[0]) | uint16(bytes[1])<<8)}
			bytes = bytes[2:]
		default:
			i.Opcode, i.Operands = "BYTE", []operand.Op{operand.U8(bytes[0])}
			bytes = bytes[1:]
		}
		Instruction(i)
	}
}

// describe says what an instruction on memory does.
func describe(name string, tile int, m Rows) string {
	return fmt.Sprintf("%s T%d, %d(%s)(%s)", name, tile, m.Disp, m.Base.Asm(), m.Stride.Asm())
}

// LDTILECFG sets the shapes of the tiles to those at config, and the tiles to 0 (VEX.128.NP.0F38.W0 49 !(11):000:bbb).
func LDTILECFG(config reg.GPPhysical) {
	b := int(config.PhysicalIndex())
	if b&7 == 4 || b&7 == 5 {
		panic("amx: LDTILECFG by SP, BP, R12 or R13, whose addresses have other bytes")
	}
	emit("LDTILECFG ("+config.Asm()+")", append(vex(prefixNone, 0x49, 0, 0, b, 0), byte(b&7)), config)
}

// TILERELEASE gives the tiles back (VEX.128.NP.0F38.W0 49 C0).
func TILERELEASE() {
	emit("TILERELEASE", append(vex(prefixNone, 0x49, 0, 0, 0, 0), 0xc0))
}

// TILEZERO sets a tile to 0 (VEX.128.F2.0F38.W0 49 11:rrr:000).
func TILEZERO(tile int) {
	emit(fmt.Sprintf("TILEZERO T%d", tile), append(vex(prefixF2, 0x49, 0, 0, 0, 0), byte(0xc0|tile<<3)))
}

// TILELOADD reads a tile (VEX.128.F2.0F38.W0 4B !(11):rrr:100).
func TILELOADD(m Rows, tile int) {
	emit(describe("TILELOADD", tile, m), memory(prefixF2, 0x4b, tile, m), m.Base, m.Stride)
}

// TILELOADDT1 is TILELOADD of what is not read again soon (VEX.128.66.0F38.W0 4B !(11):rrr:100).
func TILELOADDT1(m Rows, tile int) {
	emit(describe("TILELOADDT1", tile, m), memory(prefix66, 0x4b, tile, m), m.Base, m.Stride)
}

// TILESTORED writes a tile (VEX.128.F3.0F38.W0 4B !(11):rrr:100).
func TILESTORED(tile int, m Rows) {
	emit(describe("TILESTORED", tile, m), memory(prefixF3, 0x4b, tile, m), m.Base, m.Stride)
}

// TDPBF16PS adds to each float32 of the tile sum the products of a row of pairs of bfloat16 of a and a column of pairs
// of b (VEX.128.F3.0F38.W0 5C 11:rrr:bbb).
func TDPBF16PS(b, a, sum int) {
	emit(fmt.Sprintf("TDPBF16PS T%d, T%d, T%d", b, a, sum),
		append(vex(prefixF3, 0x5c, 0, 0, 0, b), byte(0xc0|sum<<3|a)))
}
