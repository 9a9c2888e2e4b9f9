package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// masks holds 16 words of ones and 16 of zeros: read from word 16-r on, the first r
// words are ones. lanes holds eight words with bit i set in word i.
var masks, lanes Mem

// tables stores them.
func tables() {
	masks = GLOBL("vecMasks", RODATA|NOPTR)
	for i := range 16 {
		DATA(i*floatSize, U32(0xffffffff))
	}
	for i := 16; i < 32; i++ {
		DATA(i*floatSize, U32(0))
	}
	lanes = GLOBL("vecLaneBits", RODATA|NOPTR)
	for i := range 8 {
		DATA(i*floatSize, U32(1<<i))
	}
}

// step is one vector of a loop.
type step struct {
	b     *body
	u     int // position in the unrolled body
	lanes int
	i     reg.Register
	// mask is nil for a whole vector, else a K register (AVX-512) or a vector of
	// words of ones and zeros (AVX2).
	mask reg.Register
}

// loop calls write for batches of unroll vectors, then for single vectors, then
// once for what is left with a mask. lanes is the number of elements a vector.
func (b *body) loop(n reg.Register, lanes, unroll int, write func(steps []step)) {
	i, rest := GP64(), GP64()
	XORQ(i, i)
	MOVQ(n, rest)
	counts := []int{unroll, 1}
	if unroll == 1 {
		counts = counts[:1]
	}
	for _, count := range counts {
		top, end := b.label("loop"), b.label("end")
		Label(top)
		CMPQ(rest, Imm(uint64(count*lanes)))
		JL(LabelRef(end))
		steps := make([]step, count)
		for u := range steps {
			steps[u] = step{b: b, u: u, lanes: lanes, i: i}
		}
		write(steps)
		ADDQ(Imm(uint64(count*lanes)), i)
		SUBQ(Imm(uint64(count*lanes)), rest)
		JMP(LabelRef(top))
		Label(end)
	}
	end := b.label("end")
	TESTQ(rest, rest)
	JE(LabelRef(end))
	write([]step{{b: b, lanes: lanes, i: i, mask: b.mask(rest, lanes)}})
	Label(end)
}

// each is loop for kernels that treat all vectors alike.
func (b *body) each(n reg.Register, unroll int, write func(s step)) {
	b.loop(n, b.lanes, unroll, func(steps []step) {
		for _, s := range steps {
			write(s)
		}
	})
}

// mask returns a mask of the first rest of lanes elements.
func (b *body) mask(rest reg.Register, lanes int) reg.Register {
	at, from := GP64(), GP64()
	LEAQ(masks, at)
	MOVQ(U32(16), from)
	SUBQ(rest, from)
	m := Mem{Base: at, Index: from, Scale: floatSize}
	v := sized(lanes)
	VMOVUPS(m, v)
	if !b.wide {
		return v
	}
	k := K()
	VPMOVD2M(v, k)
	return k
}

// sized returns a new register of lanes float32 values.
func sized(lanes int) reg.VecVirtual {
	switch lanes {
	case 4:
		return XMM()
	case 8:
		return YMM()
	}
	return ZMM()
}

// at returns the address of the vector in the slice at p.
func (s step) at(p reg.Register) Mem {
	return Mem{Base: p, Index: s.i, Scale: floatSize, Disp: s.u * s.lanes * floatSize}
}

// load reads the vector at p; lanes beyond the end are zero.
func (s step) load(p reg.Register) reg.VecVirtual { return s.loadFrom(s.at(p)) }

func (s step) loadFrom(m Mem) reg.VecVirtual {
	v := sized(s.lanes)
	switch {
	case s.mask == nil:
		VMOVUPS(m, v)
	case s.b.wide:
		VMOVUPS_Z(m, s.mask, v)
	default:
		VMASKMOVPS(m, s.mask, v)
	}
	return v
}

// store writes v at p, lanes beyond the end excepted.
func (s step) store(v, p reg.Register) {
	switch {
	case s.mask == nil:
		VMOVUPS(v, s.at(p))
	case s.b.wide:
		VMOVUPS(v, s.mask, s.at(p))
	default:
		VMASKMOVPS(v, s.mask, s.at(p))
	}
}

// accumulate adds v to sum, lanes beyond the end excepted. It may change v.
func (s step) accumulate(v, sum reg.Register) {
	switch {
	case s.mask == nil:
		VADDPS(v, sum, sum)
	case s.b.wide:
		VADDPS(v, sum, s.mask, sum)
	default:
		VANDPS(s.mask, v, v)
		VADDPS(v, sum, sum)
	}
}

// highest sets top to the larger of v and top, lanes beyond the end excepted, where v
// is no NaN.
func (s step) highest(v, top reg.Register) {
	switch {
	case s.mask == nil:
		VMAXPS(top, v, top) // the second source comes out if one is a NaN
	case s.b.wide:
		VMAXPS(top, v, s.mask, top)
	default:
		t := s.b.vec()
		VMAXPS(top, v, t)
		VBLENDVPS(s.mask, t, top, top)
	}
}

// minusInf returns n registers that hold minus infinity.
func (b *body) minusInf(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = b.vec()
		VBROADCASTSS(memory(0xff800000), out[i])
	}
	return out
}

// fold adds (or combines by op) the lanes of the registers into the first lane.
// op is an instruction on float32 lanes; registers other than the first keep
// their value.
func (b *body) fold(v []reg.VecVirtual, op func(ops ...Op)) reg.Register {
	return foldLanes(b.wide, v, op, 4)
}

// fold64 is fold for float64 lanes.
func (b *body) fold64(v []reg.VecVirtual, op func(ops ...Op)) reg.Register {
	return foldLanes(b.wide, v, op, 8)
}

func foldLanes(wide bool, v []reg.VecVirtual, op func(ops ...Op), size int) reg.Register {
	for n := len(v); n > 1; n /= 2 {
		for i := range n / 2 {
			op(v[i+n/2], v[i], v[i])
		}
	}
	half := v[0].AsY()
	if wide {
		high := YMM()
		VEXTRACTF64X4(Imm(1), v[0], high)
		op(high, half, half)
	}
	x, high := v[0].AsX(), XMM()
	if wide {
		VEXTRACTF32X4(Imm(1), half, high)
	} else {
		VEXTRACTF128(Imm(1), half, high)
	}
	op(high, x, x)
	if size == 8 {
		VPERMILPD(Imm(1), x, high)
		op(high, x, x)
		return x
	}
	VPERMILPS(Imm(0x0e), x, high)
	op(high, x, x)
	VPERMILPS(Imm(0x01), x, high)
	op(high, x, x)
	return x
}

// result ends a body whose results are in the first lanes of registers.
func (b *body) result(v ...reg.Register) {
	VZEROUPPER()
	for i, x := range v {
		Store(x, ReturnIndex(i))
	}
	RET()
}
