package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// General registers: those of amd64 have one each, and the rest is to work with.
var general = map[string]R{"AX": 0, "CX": 1, "DX": 2, "BX": 3, "SI": 4, "DI": 5, "BP": 6, "R8": 8, "R9": 9, "R10": 10,
	"R11": 11, "R12": 12, "R13": 13, "R14": 14, "R15": 15}

const (
	regAddress   R = 19
	regConstants R = 20 // of the table of constants
	regWork      R = 21
	regMore      R = 22
)

// Vector registers: number i of amd64 is two, 2i and 2i+1, of which instructions on half of it name the first. The last
// ones are to work with.
const (
	firstFree V = 30
	temp      V = 30 // what comes from memory
	other     V = 31
)

// memory is an address: base + index<<shift + disp, or what a symbol names.
type memory struct {
	base, index R
	indexed     bool
	shift, disp int
	symbol      string // static, or the argument or result of a function
	argument    bool
}

var (
	vectorOperand   = regexp.MustCompile(`^([XY])(\d+)$`)
	memoryOperand   = regexp.MustCompile(`^(-?\d+)?\((\w+)\)(?:\((\w+)\*(\d)\))?$`)
	argumentOperand = regexp.MustCompile(`^(\w+\+\d+)\(FP\)$`)
	staticOperand   = regexp.MustCompile(`^(\w+)<>\+(\d+)\(SB\)$`)
)

// vectorOf returns the first register of a vector operand and whether it has two.
func vectorOf(s string) (v V, whole, ok bool) {
	m := vectorOperand.FindStringSubmatch(s)
	if m == nil {
		return 0, false, false
	}
	n, _ := strconv.Atoi(m[2])
	return V(2 * n), m[1] == "Y", true
}

// generalOf returns the register of a general operand.
func generalOf(s string) (R, bool) {
	r, ok := general[s]
	return r, ok
}

// immediateOf returns a constant operand.
func immediateOf(s string) (uint64, bool) {
	text, ok := strings.CutPrefix(s, "$")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 0, 64)
	return v, err == nil
}

// memoryOf returns an operand in memory.
func memoryOf(s string) (memory, bool) {
	if m := argumentOperand.FindStringSubmatch(s); m != nil {
		return memory{symbol: m[1], argument: true}, true
	}
	if m := staticOperand.FindStringSubmatch(s); m != nil {
		disp, _ := strconv.Atoi(m[2])
		return memory{symbol: m[1], disp: disp}, true
	}
	m := memoryOperand.FindStringSubmatch(s)
	if m == nil {
		return memory{}, false
	}
	out := memory{base: general[m[2]]}
	out.disp, _ = strconv.Atoi(m[1])
	if m[3] != "" {
		out.indexed, out.index = true, general[m[3]]
		out.shift = strings.Index("1248", m[4])
	}
	return out, true
}

// address computes the address of m in a register, for an access at up to most bytes from there in steps of unit; it
// returns the register and what is left to add.
func (t *translator) address(m memory, unit, most int) (R, int) {
	r := m.base
	switch {
	case m.symbol != "":
		t.uses[m.symbol] = true
		t.line("MOVD $%s<>+%d(SB), %v", m.symbol, m.disp, regAddress)
		return regAddress, 0
	case m.indexed:
		t.line("ADD %v<<%d, %v, %v", m.index, m.shift, r, regAddress)
		r = regAddress
	}
	if m.disp%unit != 0 || m.disp < 0 || m.disp > most {
		t.line("ADD $%d, %v, %v", m.disp, r, regAddress)
		return regAddress, 0
	}
	return r, m.disp
}

// place is the operand of a load or store of so many bytes.
func (t *translator) place(m memory, size int) string {
	if m.argument {
		return m.symbol + "(FP)"
	}
	r, disp := t.address(m, size, 255)
	return fmt.Sprintf("%d(%v)", disp, r)
}
