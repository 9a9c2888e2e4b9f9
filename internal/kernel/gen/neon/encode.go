package main

import "fmt"

// V is a vector register of 128 bits.
type V int

// Registers of the processor's own that instructions name: R is a general register.
type R int

func (v V) String() string { return fmt.Sprintf("v%d", int(v)) }
func (r R) String() string { return fmt.Sprintf("R%d", int(r)) }

// three is an instruction of three vector registers, encoded but for them.
type three struct {
	name, lanes string
	code        uint32
}

// two is an instruction of two vector registers.
type two struct {
	name, to, from string
	code           uint32
}

// Instructions of two operands and a result, by the Arm Architecture Reference Manual (DDI 0487, C4.1.97). Those that
// also read the result say so.
var (
	FADD   = three{"fadd", "4s", 0x4e20d400}
	FSUB   = three{"fsub", "4s", 0x4ea0d400}
	FMUL   = three{"fmul", "4s", 0x6e20dc00}
	FDIV   = three{"fdiv", "4s", 0x6e20fc00}
	FMLA   = three{"fmla", "4s", 0x4e20cc00} // adds the product to the result
	FMLS   = three{"fmls", "4s", 0x4ea0cc00} // takes it from the result
	FCMEQ  = three{"fcmeq", "4s", 0x4e20e400}
	FCMGE  = three{"fcmge", "4s", 0x6e20e400}
	FCMGT  = three{"fcmgt", "4s", 0x6ea0e400}
	FADD64 = three{"fadd", "2d", 0x4e60d400}
	FSUB64 = three{"fsub", "2d", 0x4ee0d400}
	FMLA64 = three{"fmla", "2d", 0x4e60cc00}

	ADD  = three{"add", "4s", 0x4ea08400}
	SUB  = three{"sub", "4s", 0x6ea08400}
	CMEQ = three{"cmeq", "4s", 0x6ea08c00}
	CMGT = three{"cmgt", "4s", 0x4ea03400}
	ADDP = three{"addp", "4s", 0x4ea0bc00}

	AND   = three{"and", "16b", 0x4e201c00}
	ORR   = three{"orr", "16b", 0x4ea01c00}
	EOR   = three{"eor", "16b", 0x6e201c00}
	BSL   = three{"bsl", "16b", 0x6e601c00} // the result chooses
	ZIP1  = three{"zip1", "4s", 0x4e803800}
	ZIP2  = three{"zip2", "4s", 0x4e807800}
	ZIP1D = three{"zip1", "2d", 0x4ec03800}
	ZIP2D = three{"zip2", "2d", 0x4ec07800}
)

// Instructions of one operand.
var (
	FNEG   = two{"fneg", "4s", "4s", 0x6ea0f800}
	FSQRT  = two{"fsqrt", "4s", "4s", 0x6ea1f800}
	FRINTN = two{"frintn", "4s", "4s", 0x4e218800}
	FCVTNS = two{"fcvtns", "4s", "4s", 0x4e21a800}
	FCVTL  = two{"fcvtl", "2d", "2s", 0x0e617800}
	FCVTL2 = two{"fcvtl2", "2d", "4s", 0x4e617800}
	NOT    = two{"mvn", "16b", "16b", 0x6e205800}
	SXTL   = two{"sxtl", "2d", "2s", 0x0f20a400}
	SXTL2  = two{"sxtl2", "2d", "4s", 0x4f20a400}
)

// element is an instruction whose second operand is one lane of a register.
type element struct {
	name, to, from, lane string
	code                 uint32
}

// Instructions by one lane.
var (
	FMLALane  = element{"fmla", "4s", "4s", "s", 0x4f801000}
	FMULLane  = element{"fmul", "4s", "4s", "s", 0x4f809000}
	BFDOTLane = element{"bfdot", "4s", "8h", "2h", 0x4f40f000} // a lane is a pair
)

// shift is a shift by a constant; its field holds base plus or minus the number of bits.
type shift struct {
	name, lanes string
	code        uint32
	base        int
	left        bool
}

// Shifts.
var (
	SHL  = shift{"shl", "4s", 0x4f005400, 32, true}
	SSHR = shift{"sshr", "4s", 0x4f000400, 64, false}
)

// word is an instruction as the assembler takes it.
func word(code uint32, format string, args ...any) string {
	return fmt.Sprintf("WORD $0x%08x // ", code) + fmt.Sprintf(format, args...)
}

func (i three) of(d, n, m V) string {
	return word(i.code|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s %v.%s, %v.%s, %v.%s", i.name, d, i.lanes, n, i.lanes, m,
		i.lanes)
}

func (i two) of(d, n V) string {
	return word(i.code|uint32(n)<<5|uint32(d), "%s %v.%s, %v.%s", i.name, d, i.to, n, i.from)
}

func (i element) of(d, n, m V, lane int) string {
	code := i.code | uint32(lane&1)<<21 | uint32(lane>>1)<<11 | uint32(m)<<16 | uint32(n)<<5 | uint32(d)
	return word(code, "%s %v.%s, %v.%s, %v.%s[%d]", i.name, d, i.to, n, i.from, m, i.lane, lane)
}

func (i shift) of(d, n V, bits int) string {
	field := i.base - bits
	if i.left {
		field = i.base + bits
	}
	return word(i.code|uint32(field)<<16|uint32(n)<<5|uint32(d), "%s %v.%s, %v.%s, #%d", i.name, d, i.lanes, n, i.lanes,
		bits)
}

// move copies a register.
func move(d, n V) string {
	return word(ORR.code|uint32(n)<<16|uint32(n)<<5|uint32(d), "mov %v.16b, %v.16b", d, n)
}

// laneField is how instructions name a lane of 32 bits.
func laneField(lane int) uint32 { return uint32(lane)<<3 | 4 }

// dup spreads a lane over a register.
func dup(d, n V, lane int) string {
	return word(0x4e000400|laneField(lane)<<16|uint32(n)<<5|uint32(d), "dup %v.4s, %v.s[%d]", d, n, lane)
}

// ins copies a lane.
func ins(d V, to int, n V, from int) string {
	return word(0x6e000400|laneField(to)<<16|uint32(from)<<13|uint32(n)<<5|uint32(d), "mov %v.s[%d], %v.s[%d]", d, to, n,
		from)
}

// zero clears a register.
func zero(d V) string { return word(0x6f00e400|uint32(d), "movi %v.2d, #0", d) }

// spread fills a register with the first 8, 32 or 64 bits of a general register.
func spread(d V, from R, bits int) string {
	switch bits {
	case 64:
		return word(0x4e080c00|uint32(from)<<5|uint32(d), "dup %v.2d, x%d", d, int(from))
	case 8:
		return word(0x4e010c00|uint32(from)<<5|uint32(d), "dup %v.16b, w%d", d, int(from))
	}
	return word(0x4e040c00|uint32(from)<<5|uint32(d), "dup %v.4s, w%d", d, int(from))
}

// laneTo copies a lane to a general register.
func laneTo(d R, n V, lane int) string {
	return word(0x0e003c00|laneField(lane)<<16|uint32(n)<<5|uint32(d), "mov w%d, %v.s[%d]", int(d), n, lane)
}

// loadLane reads a lane from where at points and moves at on by 4; storeLane writes it.
func loadLane(d V, lane int, at R) string  { return oneLane(0x0ddf8000, "ld1", d, lane, at) }
func storeLane(d V, lane int, at R) string { return oneLane(0x0d9f8000, "st1", d, lane, at) }

func oneLane(code uint32, name string, d V, lane int, at R) string {
	return word(code|uint32(lane>>1)<<30|uint32(lane&1)<<12|uint32(at)<<5|uint32(d), "%s {%v.s}[%d], [x%d], #4", name, d,
		lane, int(at))
}
