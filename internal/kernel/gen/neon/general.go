package main

// branches are the jumps after a comparison, which is always right before them.
var branches = map[string]string{"JE": "BEQ", "JZ": "BEQ", "JNE": "BNE", "JNZ": "BNE", "JL": "BLT", "JGE": "BGE",
	"JMP": "B"}

// moves are loads and stores of general registers, and of the first lane of a vector: what loads, what stores, bytes.
var moves = map[string]struct {
	load, store string
	size        int
}{
	"MOVQ":  {"MOVD", "MOVD", 8},
	"MOVSS": {"FMOVS", "FMOVS", 4}, "VMOVSS": {"FMOVS", "FMOVS", 4}, "MOVSD": {"FMOVD", "FMOVD", 8},
}

// general translates an instruction on general registers; false: it is none.
func (t *translator) general(l line) bool {
	o := l.operands
	if b, ok := branches[l.opcode]; ok {
		t.line("%s %s", b, o[0])
		return true
	}
	switch l.opcode {
	case "VZEROUPPER":
		return true
	case "RET":
		t.line("RET")
		return true
	case "DECQ":
		t.line("SUBS $1, %v", general[o[0]])
		return true
	case "TESTQ", "TESTL":
		t.line("TST %v, %v", general[o[0]], general[o[1]])
		return true
	case "BSFL":
		t.line("RBITW %v, %v", general[o[0]], general[o[1]])
		t.line("CLZW %v, %v", general[o[1]], general[o[1]])
		return true
	case "XORQ":
		if o[0] == o[1] {
			t.line("MOVD ZR, %v", general[o[0]])
		}
		return o[0] == o[1]
	case "LEAQ":
		return t.lea(o)
	}
	if m, ok := moves[l.opcode]; ok {
		return t.move(m.load, m.store, m.size, o)
	}
	return t.arithmetic(l.opcode, o)
}

// arithmetic translates what counts and compares.
func (t *translator) arithmetic(opcode string, o []string) bool {
	name, ok := map[string]string{"ADDQ": "ADD", "SUBQ": "SUB", "SHLQ": "LSL", "SHRQ": "LSR", "ANDQ": "AND",
		"CMPQ": "CMP"}[opcode]
	if !ok {
		return false
	}
	from, to := o[0], o[1]
	if opcode == "CMPQ" { // CMPQ a, b compares a with b, CMP b, a too
		from, to = to, from
	}
	d, ok := generalOf(to)
	if !ok {
		return false
	}
	if v, isConstant := immediateOf(from); isConstant {
		t.line("%s $%d, %v", name, v, d)
		return true
	}
	r, ok := generalOf(from)
	if ok {
		t.line("%s %v, %v", name, r, d)
	}
	return ok
}

// lea translates the computation of an address.
func (t *translator) lea(o []string) bool {
	m, ok := memoryOf(o[0])
	d := general[o[1]]
	switch {
	case !ok || m.argument:
		return false
	case m.symbol != "":
		t.uses[m.symbol] = true
		t.line("MOVD $%s<>+%d(SB), %v", m.symbol, m.disp, d)
	case m.indexed:
		t.line("ADD %v<<%d, %v, %v", m.index, m.shift, m.base, d)
		if m.disp != 0 {
			t.line("ADD $%d, %v", m.disp, d)
		}
	default:
		t.line("ADD $%d, %v, %v", m.disp, m.base, d)
	}
	return true
}

// move translates a move between registers, constants and memory.
func (t *translator) move(load, store string, size int, o []string) bool {
	register := func(s string) (string, bool) {
		if r, ok := generalOf(s); ok {
			return r.String(), true
		}
		if v, _, ok := vectorOf(s); ok {
			return "F" + v.String()[1:], true
		}
		return "", false
	}
	from, fromRegister := register(o[0])
	to, toRegister := register(o[1])
	switch {
	case fromRegister && toRegister:
		t.line("%s %s, %s", load, from, to)
	case fromRegister:
		m, ok := memoryOf(o[1])
		if !ok {
			return false
		}
		t.line("%s %s, %s", store, from, t.place(m, size))
	case toRegister:
		if v, ok := immediateOf(o[0]); ok {
			t.line("%s $%d, %s", load, int64(v), to)
			return true
		}
		m, ok := memoryOf(o[0])
		if !ok {
			return false
		}
		if at, known := t.constants.at[m.symbol]; known && !m.argument {
			t.line("%s %d(%v), %s", load, at, regConstants, to)
			return true
		}
		t.line("%s %s, %s", load, t.place(m, size), to)
	default:
		return false
	}
	return true
}
