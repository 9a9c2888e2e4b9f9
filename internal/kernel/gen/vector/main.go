// Command vector writes the assembly of the vector kernels. Each kernel is one
// function that holds an AVX-512 body and an AVX2 body and branches on cpu.HasAVX512;
// the Go code calls it only where cpu.HasVectors is set.
//
// Run it by go generate in internal/kernel/vector.
package main

import (
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	tables()
	elementwise()
	reductions()
	exponentials()
	gelu()
	halves()
	sigmoidUnits()
	gru()
	acos()
	paths()
	argMax()
	layerNorm()
	channels()
	dropout()
	attention()
	adamW()
	randomBits()
	codes()
	bitSums()
	exchange()
	maxima()
	Generate() // parses the flags
	if err := writeOther(); err != nil {
		log.Fatal(err)
	}
}
