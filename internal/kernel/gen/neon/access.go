package main

import "fmt"

// load translates the load, or the copy, of a vector.
func (t *translator) load(d V, halves int, s string) bool {
	if v, _, ok := vectorOf(s); ok {
		for h := range halves {
			t.line("%s", move(d+V(h), v+V(h)))
		}
		return v < firstFree
	}
	m, ok := memoryOf(s)
	if _, known := t.constants.at[m.symbol]; known || halves == 1 {
		for h := range halves {
			ok = ok && t.loadHalf(d+V(h), s, h)
		}
		return ok
	}
	if !ok || m.argument {
		return false
	}
	r, disp := t.address(m, quadBytes, mostPair)
	t.line("FLDPQ %d(%v), (F%d, F%d)", disp, r, int(d), int(d)+1)
	return true
}

// mostPair is how far a load or store of two registers reaches.
const mostPair = 63 * quadBytes

// store translates stores of vectors.
func (t *translator) store(opcode string, o []string) bool {
	s, whole, ok := vectorOf(o[0])
	m, isMemory := memoryOf(o[len(o)-1])
	if !ok || !isMemory || m.argument || m.symbol != "" || s >= firstFree {
		return false
	}
	switch opcode {
	case "VMOVUPS", "VMOVUPD":
		r, disp := t.address(m, quadBytes, mostPair)
		if whole {
			t.line("FSTPQ (F%d, F%d), %d(%v)", int(s), int(s)+1, disp, r)
		} else {
			t.line("FMOVQ F%d, %d(%v)", int(s), disp, r)
		}
		return true
	case "VMASKMOVPS":
		by, _, ok := vectorOf(o[1])
		t.masked(m, s, by, whole, storeLane)
		return ok
	}
	return false
}

// maskedLoad translates the load of the first lanes.
func (t *translator) maskedLoad(d V, halves int, o []string) bool {
	m, ok := memoryOf(o[0])
	by, _, isVector := vectorOf(o[1])
	if !ok || !isVector || m.argument || m.symbol != "" {
		return false
	}
	to := d
	if by == d {
		to = temp // and other
	}
	for h := range halves {
		t.line("%s", zero(to+V(h)))
	}
	t.masked(m, to, by, halves == 2, loadLane)
	if to != d {
		for h := range halves {
			t.line("%s", move(d+V(h), to+V(h)))
		}
	}
	return true
}

// masked goes over lanes as long as the mask has ones: those of kernels have them in the first lanes alone.
func (t *translator) masked(m memory, v, by V, whole bool, lane func(d V, lane int, at R) string) {
	r, disp := t.address(m, 1, 4095)
	t.line("ADD $%d, %v, %v", disp, r, regAddress)
	t.labels++
	end := fmt.Sprintf("masked%d", t.labels)
	lanes := quad
	if whole {
		lanes = 2 * quad
	}
	for i := range lanes {
		h := V(i / quad)
		t.line("%s", laneTo(regWork, by+h, i%quad))
		t.line("CBZW %v, %s", regWork, end)
		t.line("%s", lane(v+h, i%quad, regAddress))
	}
	t.label(end)
}

// broadcast translates the copy of one value to all lanes.
func (t *translator) broadcast(opcode string, d V, halves int, s string) bool {
	if v, _, ok := vectorOf(s); ok {
		for h := halves - 1; h >= 0; h-- { // d may be v
			t.line("%s", dup(d+V(h), v, 0))
		}
		return opcode == "VBROADCASTSS"
	}
	m, ok := memoryOf(s)
	if !ok {
		return false
	}
	if _, known := t.constants.at[m.symbol]; known && !m.argument {
		return t.load(d, halves, s)
	}
	load, size := "MOVWU", 4
	switch opcode {
	case "VBROADCASTSD":
		load, size = "MOVD", 8
	case "VPBROADCASTB":
		load, size = "MOVBU", 1
	}
	t.line("%s %s, %v", load, t.place(m, size), regWork)
	for h := range halves {
		t.line("%s", spread(d+V(h), regWork, 8*size))
	}
	return true
}

// signs translates the collection of the signs of all lanes, as the bits of a general register.
func (t *translator) signs(opcode string, o []string) bool {
	if opcode != "VMOVMSKPS" {
		return false
	}
	v, whole, ok := vectorOf(o[0])
	d, isGeneral := generalOf(o[1])
	if !ok || !whole || !isGeneral {
		return false
	}
	t.uses["vecLaneBits"] = true
	t.line("MOVD $vecLaneBits<>(SB), %v", regAddress)
	for h, r := range []R{d, regWork} {
		t.line("FMOVQ %d(%v), F%d", h*quadBytes, regAddress, int(temp))
		t.line("%s", SSHR.of(other, v+V(h), 31))
		t.line("%s", AND.of(temp, temp, other))
		t.line("%s", ADDP.of(temp, temp, temp))
		t.line("%s", ADDP.of(temp, temp, temp))
		t.line("%s", laneTo(r, temp, 0))
	}
	t.line("ORR %v, %v", regWork, d)
	return true
}
