package vector

import (
	"fmt"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// CodeWidth is what the width of rows for DotCodes is a multiple of.
const CodeWidth = 16

// CodeLimit returns the largest size of the values of y with which a product of DotCodes of n
// values cannot overflow, whatever the codes are.
func CodeLimit(n int) int16 { return int16(min(1<<15-1, (1<<31-1)/(max(n, 1)<<7))) }

// DotCodes sets dst (rows) to the products of the rows of x (rows, n) with y (n), where n is
// len(y), a multiple of CodeWidth. Sums are exact for values of y up to CodeLimit(n) in size.
// The processor widens codes as it loads them, so memory is read at a quarter of the bytes of
// float32. A length that does not fit is a panic.
func DotCodes(dst []int32, x []int8, y []int16) {
	n := len(y)
	if n == 0 || n%CodeWidth != 0 || len(x) != len(dst)*n {
		panic(fmt.Sprintf("kernel: vector: codes: %d rows of %d codes from %d: want rows of a multiple of %d",
			len(dst), n, len(x), CodeWidth))
	}
	if len(dst) == 0 {
		return
	}
	if !cpu.HasAVX2FMA {
		plainDotCodes(dst, x, y)
		return
	}
	dotCodesVec(unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(y), len(dst), n)
}

func plainDotCodes(dst []int32, x []int8, y []int16) {
	n := len(y)
	for i := range dst {
		var s int32
		for j, v := range x[i*n:][:n] {
			s += int32(v) * int32(y[j])
		}
		dst[i] = s
	}
}

// BitWidth is what the bits of a row for DotBits are a multiple of.
const BitWidth = 64

// MaxBits is the most bits of a row for DotBits.
const MaxBits = 1 << 16

// DotBits sets dst (rows) to the sums of the values of y (n) at the bits that are set in the rows of x (rows, n/8), the
// lowest bit of a byte first, where n is len(y), a multiple of BitWidth. Sums are exact. A length that does not fit is
// a panic.
func DotBits(dst []int32, x []uint8, y []int8) {
	n := len(y)
	if n == 0 || n%BitWidth != 0 || n > MaxBits || len(x) != len(dst)*n/8 {
		panic(fmt.Sprintf("kernel: vector: bits: %d rows of %d bits from %d bytes: want rows of a multiple of %d, at most %d",
			len(dst), n, len(x), BitWidth, MaxBits))
	}
	if len(dst) == 0 {
		return
	}
	if !cpu.HasAVX2FMA {
		plainDotBits(dst, x, y)
		return
	}
	dotBitsVec(unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(y), len(dst), n/8)
}

// plainDotBits looks sums of eight values up, for one byte of all rows after the other.
func plainDotBits(dst []int32, x []uint8, y []int8) {
	clear(dst)
	width := len(y) / 8
	var sums [256]int32
	for at := range width {
		for bit, v := range y[8*at : 8*at+8] {
			for low := range 1 << bit {
				sums[1<<bit|low] = sums[low] + int32(v)
			}
		}
		for i := range dst {
			dst[i] += sums[x[i*width+at]]
		}
	}
}
