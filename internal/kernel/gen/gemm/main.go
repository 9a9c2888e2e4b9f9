// Command gemm writes the assembly of the built-in matrix products: for each
// instruction set and each tile height one function that multiplies a few rows
// of A by a panel of B, the functions that pack panels, and the conversions
// between float32 and bfloat16.
//
// Run it by go generate in internal/kernel.
package main

import . "github.com/mmcloughlin/avo/build"

const (
	rowsAVX512 = 14 // 14 x 2 sums + 2 of B + 1 of A = 31 of 32 registers
	rowsAVX2   = 6  // 6 x 2 sums + 2 of B + 1 of A = 15 of 16 registers
	columns    = 2
	floatSize  = 4
)

func main() {
	for _, s := range []set{
		{name: "AVX512", rows: rowsAVX512, lanes: 16, wide: true},
		{name: "AVX2", rows: rowsAVX2, lanes: 8},
		{name: "BF16", rows: rowsAVX512, lanes: 16, wide: true, bf16: true},
	} {
		for r := 1; r <= s.rows; r++ {
			for c := 1; c <= columns; c++ {
				s.tile(r, c)
			}
		}
	}
	pack8()
	prefetch()
	for c := 1; c <= columns; c++ {
		for _, from := range []source{asWords, fromFloats, fromHalves} {
			pairs(c, from)
		}
	}
	convert()
	toHalvesAVX512()
	toHalvesAVX2()
	fromHalvesAVX512()
	fromHalvesAVX2()
	Generate()
}
