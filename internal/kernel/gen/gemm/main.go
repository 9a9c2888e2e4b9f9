// Command gemm writes the assembly of the built-in matrix products: for each
// instruction set and each tile height one function that multiplies a few rows
// of A by a panel of B, and the functions that pack panels. With -halves it writes
// the conversions between float32 and bfloat16 instead.
//
// Run it by go generate in internal/kernel/gemm and internal/kernel/vector.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
)

const (
	rowsAVX512 = 14 // 14 x 2 sums + 2 of B + 1 of A = 31 of 32 registers
	rowsAVX2   = 6  // 6 x 2 sums + 2 of B + 1 of A = 15 of 16 registers
	columns    = 2
	floatSize  = 4
)

var onlyHalves = flag.Bool("halves", false, "write the conversions of bfloat16 alone")

func main() {
	flag.Parse()
	if *onlyHalves {
		conversions()
	} else {
		products()
	}
	Generate()
}

// conversions are those of arrays.
func conversions() {
	toHalvesBF16()
	toHalvesAVX512()
	toHalvesAVX2()
	fromHalvesAVX512()
	fromHalvesAVX2()
}

// products are what products consist of.
func products() {
	for _, s := range []set{
		{name: "AVX512", rows: rowsAVX512, lanes: 16, wide: true},
		{name: "AVX2", rows: rowsAVX2, lanes: 8},
		{name: "BF16", rows: rowsAVX512, lanes: 16, wide: true, of: halves},
		{name: "VNNI", rows: rowsAVX512, lanes: 16, wide: true, of: bytes},
		{name: "Shorts", rows: rowsAVX2, lanes: 8, of: shorts},
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
		wordsAVX2(c)
	}
	span(true)
	span(false)
	codesAVX512()
	codesAVX2()
	convert()
	for rows := 1; rows <= 2; rows++ {
		for columns := 1; columns <= 2; columns++ {
			amxProduct(rows, columns)
		}
	}
	amxGELU()
	amxRows(fromFloats)
	amxRows(fromHalves)
	amxTranspose()
	amxColumns()
}
