package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const floatSize = 4

// body is one of the two bodies of a kernel.
type body struct {
	wide   bool // AVX-512
	rounds bool // with the instructions of AVX-512 BF16
	lanes  int  // float32 values in a vector
	labels *int
	name   string
	hoist  map[uint32]reg.VecVirtual
	rare   []func() // what is written behind the body
}

// later writes instructions behind the body, where a jump leads.
func (b *body) later(write func()) { b.rare = append(b.rare, write) }

// Variables of package cpu as the assembler spells them: a middle dot for
// each dot, a division slash for each slash.
const (
	cpuPackage = "github\u00b7com\u2215geoalign\u2215geoalign\u2215internal\u2215kernel\u2215cpu\u00b7"
	hasAVX512  = cpuPackage + "HasAVX512"
	hasBF16    = cpuPackage + "HasBF16"
)

// kernel writes a function: write is called once for each instruction set.
func kernel(name, signature, doc string, write func(b *body)) {
	declare(name, signature, doc)
	labels := 0
	CMPB(NewDataAddr(Symbol{Name: hasAVX512}, 0), Imm(0))
	JE(LabelRef("narrow"))
	write(&body{wide: true, lanes: 16, labels: &labels, name: name, hoist: map[uint32]reg.VecVirtual{}})
	Label("narrow")
	write(&body{lanes: 8, labels: &labels, name: name})
}

// narrowKernel is kernel for what AVX2 does at least as fast as AVX-512: write is
// called once.
func narrowKernel(name, signature, doc string, write func(b *body)) {
	declare(name, signature, doc)
	labels := 0
	write(&body{lanes: 8, labels: &labels, name: name})
}

// declare begins a function.
func declare(name, signature, doc string) {
	signatures = append(signatures, strings.Replace(signature, "func", "func "+name, 1))
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

// done ends a body that returns nothing.
func (b *body) done() {
	VZEROUPPER()
	RET()
	for _, write := range b.rare {
		write()
	}
	b.rare = nil
}

// label returns a name not used before in the function.
func (b *body) label(s string) string {
	*b.labels++
	return fmt.Sprintf("%s%d", s, *b.labels)
}

// vec returns a new vector register.
func (b *body) vec() reg.VecVirtual {
	if b.wide {
		return ZMM()
	}
	return YMM()
}

// zero returns a new vector register that holds zeros.
func (b *body) zero() reg.VecVirtual {
	v := b.vec()
	VXORPS(v, v, v)
	return v
}

// zeros returns n registers that hold zeros.
func (b *body) zeros(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = b.zero()
	}
	return out
}

// pointer loads a pointer or integer argument.
func pointer(name string) reg.Register { return Load(Param(name), GP64()) }

// scalar returns a vector with a float32 argument in every lane.
func (b *body) scalar(name string) reg.VecVirtual {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := b.vec()
	VBROADCASTSS(p.Addr, v)
	return v
}

var constants = map[uint32]Mem{}

// memory returns where the bits of a float32 are stored eight times in a row.
func memory(bits uint32) Mem {
	m, ok := constants[bits]
	if !ok {
		m = GLOBL(fmt.Sprintf("vec%08x", bits), RODATA|NOPTR)
		for i := range 8 {
			DATA(i*floatSize, U32(bits))
		}
		constants[bits] = m
	}
	return m
}

// constants loads values that the loop will use. With AVX-512 they stay in
// registers, with AVX2 the instructions read them from memory.
func (b *body) constants(values ...float32) {
	for _, v := range values {
		b.bits(math.Float32bits(v))
	}
}

// bits is constants for bit patterns.
func (b *body) bits(values ...uint32) {
	if !b.wide {
		return
	}
	for _, v := range values {
		if _, ok := b.hoist[v]; !ok {
			r := b.vec()
			VBROADCASTSS(memory(v), r)
			b.hoist[v] = r
		}
	}
}

// c returns a constant as an operand.
func (b *body) c(v float32) Op { return b.cbits(math.Float32bits(v)) }

// cbits is c for a bit pattern.
func (b *body) cbits(v uint32) Op {
	if !b.wide {
		return memory(v)
	}
	r, ok := b.hoist[v]
	if !ok {
		panic(fmt.Sprintf("%s: constant %08x was not loaded before the loop", b.name, v))
	}
	return r
}

// copy returns a new register that holds the value of an operand.
func (b *body) copy(x Op) reg.VecVirtual {
	v := b.vec()
	VMOVUPS(x, v)
	return v
}

// register returns a constant in a register that must not be changed.
func (b *body) register(v float32) reg.Register {
	if b.wide {
		return b.c(v).(reg.Register)
	}
	return b.copy(b.c(v))
}

// horner returns a polynomial of x, coefficients from the highest power down.
func (b *body) horner(x reg.Register, coefficients ...float32) reg.VecVirtual {
	p := b.copy(b.c(coefficients[0]))
	for _, c := range coefficients[1:] {
		VFMADD213PS(b.c(c), x, p)
	}
	return p
}
