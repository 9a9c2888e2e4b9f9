package gemm

import "unsafe"

// tileArgs is what a tile function reads; the generators in ../gen/gemm and ../gen/neon know the offsets.
type tileArgs struct {
	k        int            // 0: number of terms, at least 1
	a        unsafe.Pointer // 8
	aRow, aK int            // 16, 24: strides of A along rows and terms, in bytes
	b        unsafe.Pointer // 32
	bK       int            // 40: stride of B along terms, in bytes
	c        unsafe.Pointer // 48
	cRow     int            // 56: stride of C, in bytes
	alpha    float32        // 64
	add      uint32         // 68: not 0 to add to C
	mask     uint64         // 72: one bit for each column
	next     uintptr        // 80: not 0 to ask for as many words from there on, in float32 with AVX-512

	// Of products in int8 alone, see Int8.
	scales unsafe.Pointer // 88: of the columns
	sums   unsafe.Pointer // 96: of the codes of the columns
	rows   unsafe.Pointer // 104: scales of the rows
	zeros  unsafe.Pointer // 112: codes of 0 in the rows
}
