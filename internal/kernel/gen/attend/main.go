// Command attend writes the assembly of attention in bfloat16: the passes over a panel of scores, and what brings rows
// of bfloat16 into the order in which tiles read them. All of it is for AVX-512 with BF16.
//
// Run it by go generate in internal/kernel/attend.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	softmax()
	gradient()
	transpose()
	scale()
	Generate()
}

// Offsets in passArgs of columns_amd64.go.
const (
	offScores     = 0
	offGrads      = 8
	offKeys       = 16
	offQueries    = 24
	offStats      = 32
	offBits       = 40
	offBitsStride = 48
	offScale      = 56
	offP          = 64
	offPRow       = 72
	offDS         = 80
	offPairs      = 88
	offPairsRow   = 96
)

const (
	vectorBytes = 64
	panelRow    = 128 // bytes of a row of a panel: 32 words
	panelWords  = 32
	lanes       = 16
	factors     = panelRow // from lse to the factors in the statistics
)

// zmm are the vector registers by number: the instructions of BF16 want those.
var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
	reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}

// field returns a loaded field of the struct at t.
func field(t reg.Register, offset int) reg.GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: t, Disp: offset}, r)
	return r
}

// begin starts a function.
func begin(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(name+" "+doc, "\n")...)
}

// end ends one.
func end() {
	VZEROUPPER()
	RET()
}

var tables = map[string]Mem{}

// table returns where words lie.
func table(name string, words func(i int) uint32) Mem {
	m, ok := tables[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range lanes {
			DATA(4*i, U32(words(i)))
		}
		tables[name] = m
	}
	return m
}

// interleave returns the indices for VPERMW that bring the two halves of a vector together word by word.
func interleave() Mem {
	return table("attendInterleave", func(i int) uint32 { return uint32(i) | uint32(lanes+i)<<16 })
}

// increasing returns the numbers from 0.
func increasing() Mem { return table("attendIncreasing", func(i int) uint32 { return uint32(i) }) }

// firstLanes returns a mask of the first n lanes, n in [0, 16].
func firstLanes(n reg.Register) reg.OpmaskVirtual {
	ones, k := GP64(), K()
	MOVQ(I32(-1), ones)
	BZHIQ(n, ones, ones)
	KMOVW(ones.As32(), k)
	return k
}
