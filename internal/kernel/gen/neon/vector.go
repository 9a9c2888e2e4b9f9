package main

// Instructions that do the same, opcode by opcode: of amd64 the second source comes first.
var (
	sameOfTwo = map[string]three{
		"VADDPS": FADD, "VSUBPS": FSUB, "VMULPS": FMUL, "VDIVPS": FDIV, "VDIVSS": FDIV, "VMULSS": FMUL,
		"VANDPS": AND, "VANDPD": AND, "VPAND": AND, "VORPS": ORR, "VXORPS": EOR,
		"VPADDD": ADD, "VPSUBD": SUB, "VPCMPEQD": CMEQ, "VPCMPGTD": CMGT,
		"VADDPD": FADD64, "VSUBPD": FSUB64,
	}
	sameOfOne  = map[string]two{"VSQRTPS": FSQRT, "VCVTPS2DQ": FCVTNS}
	sameShift  = map[string]shift{"VPSLLD": SHL, "VPSRAD": SSHR}
	sameSum    = map[string]three{"VFMADD231PS": FMLA, "VFNMADD231PS": FMLS, "VFMADD231PD": FMLA64}
	widenings  = map[string][2]two{"VCVTPS2PD": {FCVTL, FCVTL2}, "VPMOVSXDQ": {SXTL, SXTL2}}
	sumOfOther = map[string]struct { // result times the second source, plus or minus the first
		sum    three
		negate bool
	}{
		"VFMADD213PS": {FMLA, false}, "VFMSUB213PS": {FMLA, true}, "VFNMADD213PS": {FMLS, false},
		"VFNMSUB213PS": {FMLS, true},
	}
)

// vector translates an instruction on vectors; false: it cannot.
func (t *translator) vector(l line) bool {
	o := l.operands
	last := o[len(o)-1]
	d, whole, isVector := vectorOf(last)
	if !isVector {
		return t.store(l.opcode, o) || t.signs(l.opcode, o)
	}
	if d >= firstFree {
		return false
	}
	halves := 1
	if whole {
		halves = 2
	}
	switch l.opcode {
	case "VMOVUPS", "VMOVUPD":
		return t.load(d, halves, o[0])
	case "VMASKMOVPS":
		return t.maskedLoad(d, halves, o)
	case "VBROADCASTSS", "VBROADCASTSD", "VPBROADCASTB":
		return t.broadcast(l.opcode, d, halves, o[0])
	case "VEXTRACTF128":
		s, _, ok := vectorOf(o[1])
		t.line("%s", move(d, s+1))
		return ok && o[0] == "$0x01"
	}
	if l.opcode == "VXORPS" && o[0] == o[1] {
		for h := range halves {
			t.line("%s", zero(d+V(h)))
		}
		return true
	}
	if w, ok := widenings[l.opcode]; ok {
		s, ok := t.source(o[0], 0)
		t.line("%s", w[1].of(d+1, s)) // s may be d
		t.line("%s", w[0].of(d, s))
		return ok
	}
	for h := range halves {
		if !t.half(l.opcode, o, d+V(h), h) {
			return false
		}
	}
	return true
}

// source returns the register of half h of an operand, which it loads where that is in memory.
func (t *translator) source(s string, h int) (V, bool) {
	if v, _, ok := vectorOf(s); ok {
		return v + V(h), v < firstFree
	}
	return temp, t.loadHalf(temp, s, h)
}

// loadHalf loads half h of an operand in memory.
func (t *translator) loadHalf(d V, s string, h int) bool {
	m, ok := memoryOf(s)
	if !ok || m.argument {
		return false
	}
	if at, known := t.constants.at[m.symbol]; known {
		t.line("FMOVQ %d(%v), F%d", at, regConstants, int(d))
		return true
	}
	m.disp += h * quadBytes
	r, disp := t.address(m, quadBytes, 4095*quadBytes)
	t.line("FMOVQ %d(%v), F%d", disp, r, int(d))
	return true
}

// half translates what is done to each half alike.
func (t *translator) half(opcode string, o []string, d V, h int) bool {
	if i, ok := sameShift[opcode]; ok {
		bits, isBits := immediateOf(o[0])
		s, ok := t.source(o[1], h)
		t.line("%s", i.of(d, s, int(bits)))
		return ok && isBits
	}
	if i, ok := sameOfOne[opcode]; ok {
		s, ok := t.source(o[0], h)
		t.line("%s", i.of(d, s))
		return ok
	}
	if i, ok := sumOfOther[opcode]; ok {
		s, ok := t.source(o[1], h)
		return ok && t.start(o[0], h, i.negate) && t.finish(i.sum.of(other, s, d), d)
	}
	switch opcode {
	case "VROUNDPS":
		s, ok := t.source(o[1], h)
		t.line("%s", FRINTN.of(d, s))
		return ok && o[0] == "$0x08" // to nearest
	case "VPERMILPS", "VPERMILPD":
		return t.permute(opcode, o, d, h)
	case "VCMPPS":
		return t.compare(o, d, h)
	}
	second, ok := t.source(o[len(o)-3], h)
	if !ok {
		return false
	}
	first, ok := t.source(o[len(o)-2], h)
	if !ok {
		return false
	}
	if i, ok := sameOfTwo[opcode]; ok {
		t.line("%s", i.of(d, first, second))
		return true
	}
	if i, ok := sameSum[opcode]; ok {
		t.line("%s", i.of(d, first, second))
		return true
	}
	switch opcode {
	case "VMAXPS": // the second source unless the first one is larger
		t.line("%s", FCMGT.of(other, first, second))
		return t.finish(BSL.of(other, first, second), d)
	case "VMINPS":
		t.line("%s", FCMGT.of(other, second, first))
		return t.finish(BSL.of(other, first, second), d)
	case "VBLENDVPS":
		by, ok := t.source(o[0], h)
		t.line("%s", SSHR.of(other, by, 31))
		return ok && t.finish(BSL.of(other, second, first), d)
	}
	return false
}

// start copies half h of an operand, or its negative, to where a sum of it begins.
func (t *translator) start(s string, h int, negate bool) bool {
	v, _, isVector := vectorOf(s)
	switch {
	case isVector && negate:
		t.line("%s", FNEG.of(other, v+V(h)))
	case isVector:
		t.line("%s", move(other, v+V(h)))
	case !t.loadHalf(other, s, h):
		return false
	case negate:
		t.line("%s", FNEG.of(other, other))
	}
	return true
}

// finish writes an instruction whose result is in other, and moves that to d.
func (t *translator) finish(instruction string, d V) bool {
	t.line("%s", instruction)
	t.line("%s", move(d, other))
	return true
}

// compare translates the predicates in use.
func (t *translator) compare(o []string, d V, h int) bool {
	second, ok := t.source(o[1], h)
	if !ok {
		return false
	}
	first, ok := t.source(o[2], h)
	if !ok {
		return false
	}
	switch o[0] {
	case "$0x00": // equal
		t.line("%s", FCMEQ.of(d, first, second))
	case "$0x1e": // greater
		t.line("%s", FCMGT.of(d, first, second))
	case "$0x1a": // not greater
		t.line("%s", FCMGT.of(d, first, second))
		t.line("%s", NOT.of(d, d))
	case "$0x19": // less, or a NaN
		t.line("%s", FCMGE.of(d, first, second))
		t.line("%s", NOT.of(d, d))
	case "$0x03": // a NaN in either
		t.line("%s", FCMEQ.of(other, first, first))
		if first != second {
			t.line("%s", FCMEQ.of(temp, second, second))
			t.line("%s", AND.of(other, other, temp))
		}
		t.line("%s", NOT.of(d, other))
	default:
		return false
	}
	return true
}

// permute translates a choice of lanes within each half.
func (t *translator) permute(opcode string, o []string, d V, h int) bool {
	choice, _ := immediateOf(o[0])
	s, ok := t.source(o[1], h)
	if !ok {
		return false
	}
	for i := range quad {
		lane := int(choice>>(2*i)) & 3
		if opcode == "VPERMILPD" {
			lane = int(choice>>(i/2))&1*2 + i%2
		}
		t.line("%s", ins(other, i, s, lane))
	}
	t.line("%s", move(d, other))
	return true
}
