package vector

import (
	"fmt"
	"unsafe"
)

// CheckMatrix panics unless length values hold rows of so many columns, ld apart.
func CheckMatrix(name string, rows, columns, length, ld int) {
	if rows == 0 || columns == 0 {
		return
	}
	if ld < columns || length < (rows-1)*ld+columns {
		panic(fmt.Sprintf("kernel: product: %s is %d x %d with stride %d, which does not fit (slice of %d)", name,
			rows, columns, ld, length))
	}
}

// Vector kernels. All work on the calling thread and allocate nothing; slices of
// one call have the same length (the length of the first) unless said otherwise,
// and a shorter one is a panic. dst may be the same slice as an input, but must
// not overlap it partly.
//
// Each has an AVX-512 body, an AVX2 body and a plain twin in vector_plain.go. The
// bits of a result depend on the values, the length and the instruction set, not
// on where a slice begins; kernels that treat each element alone give the same
// bits with AVX2 and AVX-512, and do not depend on the length either. Limits of errors are for the assembly; they are
// in units of the last place (ulp) of float32 or relative to the exact value.

// at returns the first element of x, which must hold at least n.
func at(x []float32, n int) *float32 {
	if len(x) < n {
		panic("kernel: vector: a slice is shorter than the first")
	}
	return unsafe.SliceData(x)
}

// checkRows panics unless x is made of whole rows of n elements.
func checkRows(x []float32, n int) {
	if len(x) > 0 && (n == 0 || len(x)%n != 0) {
		panic("kernel: vector: length is not a multiple of the row")
	}
}
