package main

import (
	"fmt"
	"testing"
)

// Words are those of GNU as 2.40 for the same text.
func TestEncode(t *testing.T) {
	for _, r := range []struct {
		got  string
		code uint32
		text string
	}{
		{FADD.of(29, 17, 3), 0x4e23d63d, "fadd v29.4s, v17.4s, v3.4s"},
		{FSUB.of(29, 17, 3), 0x4ea3d63d, "fsub v29.4s, v17.4s, v3.4s"},
		{FMUL.of(29, 17, 3), 0x6e23de3d, "fmul v29.4s, v17.4s, v3.4s"},
		{FDIV.of(29, 17, 3), 0x6e23fe3d, "fdiv v29.4s, v17.4s, v3.4s"},
		{FMLA.of(29, 17, 3), 0x4e23ce3d, "fmla v29.4s, v17.4s, v3.4s"},
		{FMLS.of(29, 17, 3), 0x4ea3ce3d, "fmls v29.4s, v17.4s, v3.4s"},
		{FCMEQ.of(29, 17, 3), 0x4e23e63d, "fcmeq v29.4s, v17.4s, v3.4s"},
		{FCMGE.of(29, 17, 3), 0x6e23e63d, "fcmge v29.4s, v17.4s, v3.4s"},
		{FCMGT.of(29, 17, 3), 0x6ea3e63d, "fcmgt v29.4s, v17.4s, v3.4s"},
		{FADD64.of(29, 17, 3), 0x4e63d63d, "fadd v29.2d, v17.2d, v3.2d"},
		{FSUB64.of(29, 17, 3), 0x4ee3d63d, "fsub v29.2d, v17.2d, v3.2d"},
		{FMLA64.of(29, 17, 3), 0x4e63ce3d, "fmla v29.2d, v17.2d, v3.2d"},
		{ADD.of(29, 17, 3), 0x4ea3863d, "add v29.4s, v17.4s, v3.4s"},
		{SUB.of(29, 17, 3), 0x6ea3863d, "sub v29.4s, v17.4s, v3.4s"},
		{CMEQ.of(29, 17, 3), 0x6ea38e3d, "cmeq v29.4s, v17.4s, v3.4s"},
		{CMGT.of(29, 17, 3), 0x4ea3363d, "cmgt v29.4s, v17.4s, v3.4s"},
		{ADDP.of(29, 17, 3), 0x4ea3be3d, "addp v29.4s, v17.4s, v3.4s"},
		{AND.of(29, 17, 3), 0x4e231e3d, "and v29.16b, v17.16b, v3.16b"},
		{ORR.of(29, 17, 3), 0x4ea31e3d, "orr v29.16b, v17.16b, v3.16b"},
		{EOR.of(29, 17, 3), 0x6e231e3d, "eor v29.16b, v17.16b, v3.16b"},
		{BSL.of(29, 17, 3), 0x6e631e3d, "bsl v29.16b, v17.16b, v3.16b"},
		{ZIP1.of(29, 17, 3), 0x4e833a3d, "zip1 v29.4s, v17.4s, v3.4s"},
		{ZIP2.of(29, 17, 3), 0x4e837a3d, "zip2 v29.4s, v17.4s, v3.4s"},
		{ZIP1D.of(29, 17, 3), 0x4ec33a3d, "zip1 v29.2d, v17.2d, v3.2d"},
		{ZIP2D.of(29, 17, 3), 0x4ec37a3d, "zip2 v29.2d, v17.2d, v3.2d"},
		{FNEG.of(29, 17), 0x6ea0fa3d, "fneg v29.4s, v17.4s"},
		{FSQRT.of(29, 17), 0x6ea1fa3d, "fsqrt v29.4s, v17.4s"},
		{FRINTN.of(29, 17), 0x4e218a3d, "frintn v29.4s, v17.4s"},
		{FCVTNS.of(29, 17), 0x4e21aa3d, "fcvtns v29.4s, v17.4s"},
		{FCVTL.of(29, 17), 0x0e617a3d, "fcvtl v29.2d, v17.2s"},
		{FCVTL2.of(29, 17), 0x4e617a3d, "fcvtl2 v29.2d, v17.4s"},
		{NOT.of(29, 17), 0x6e205a3d, "mvn v29.16b, v17.16b"},
		{SXTL.of(29, 17), 0x0f20a63d, "sxtl v29.2d, v17.2s"},
		{SXTL2.of(29, 17), 0x4f20a63d, "sxtl2 v29.2d, v17.4s"},
		{FMLALane.of(29, 17, 30, 1), 0x4fbe123d, "fmla v29.4s, v17.4s, v30.s[1]"},
		{FMLALane.of(29, 17, 30, 2), 0x4f9e1a3d, "fmla v29.4s, v17.4s, v30.s[2]"},
		{FMULLane.of(29, 17, 30, 1), 0x4fbe923d, "fmul v29.4s, v17.4s, v30.s[1]"},
		{FMULLane.of(29, 17, 30, 2), 0x4f9e9a3d, "fmul v29.4s, v17.4s, v30.s[2]"},
		{BFDOTLane.of(29, 17, 30, 1), 0x4f7ef23d, "bfdot v29.4s, v17.8h, v30.2h[1]"},
		{BFDOTLane.of(29, 17, 30, 2), 0x4f5efa3d, "bfdot v29.4s, v17.8h, v30.2h[2]"},
		{SHL.of(29, 17, 5), 0x4f25563d, "shl v29.4s, v17.4s, #5"},
		{SSHR.of(29, 17, 5), 0x4f3b063d, "sshr v29.4s, v17.4s, #5"},
		{dup(29, 17, 3), 0x4e1c063d, "dup v29.4s, v17.s[3]"},
		{ins(29, 1, 17, 2), 0x6e0c463d, "mov v29.s[1], v17.s[2]"},
		{move(29, 17), 0x4eb11e3d, "mov v29.16b, v17.16b"},
		{zero(29), 0x6f00e41d, "movi v29.2d, #0"},
		{spread(29, 17, 8), 0x4e010e3d, "dup v29.16b, w17"},
		{spread(29, 17, 32), 0x4e040e3d, "dup v29.4s, w17"},
		{spread(29, 17, 64), 0x4e080e3d, "dup v29.2d, x17"},
		{laneTo(17, 29, 3), 0x0e1c3fb1, "mov w17, v29.s[3]"},
		{loadLane(29, 3, 17), 0x4ddf923d, "ld1 {v29.s}[3], [x17], #4"},
		{storeLane(29, 2, 17), 0x4d9f823d, "st1 {v29.s}[2], [x17], #4"},
	} {
		if want := fmt.Sprintf("WORD $0x%08x // %s", r.code, r.text); r.got != want {
			t.Errorf("got %s, want %s", r.got, want)
		}
	}
}
