package vector

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// The functions of this file are passes over memory that write or read bfloat16 where
// others of the same name have float32. They work in pieces that stay in the first
// cache as float32, so the numbers are those of the float32 pass, rounded by ToBF16 or
// widened by FromBF16.

// halfPiece is the number of values of a piece; a multiple of 32, so that pieces begin
// with a word of dropout bits.
const halfPiece = 512

// DropoutToBF16 is Dropout with the result rounded.
func DropoutToBF16(dst []uint16, x []float32, bits []int32, scale float32) {
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		Dropout(piece[:n], x[:n], bits, scale)
		ToBF16(dst[:n], piece[:n])
		dst, x, bits = dst[n:], x[n:], bits[(n+31)/32:]
	}
}

// AddToBF16 sets dst = x + y, rounded.
func AddToBF16(dst []uint16, x, y []float32) {
	if n := len(dst); cpu.HasAVX512 && n > 0 {
		x, y = x[:n], y[:n]
		addToHalvesVec(&dst[0], &x[0], &y[0], n)
		return
	}
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		Add(piece[:n], x[:n], y[:n])
		ToBF16(dst[:n], piece[:n])
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

// FromHalfRows sets dst to rows of n values that are ld apart in src.
func FromHalfRows(dst []float32, src []uint16, ld, rows, n int) {
	CheckMatrix("halves", rows, n, len(src), ld)
	CheckMatrix("rows", rows, n, len(dst), n)
	if cpu.HasAVX512 && n%16 == 0 && rows > 0 && n > 0 {
		fromHalfRowsVec(&dst[0], &src[0], ld, rows, n)
		return
	}
	for i := range rows {
		FromBF16(dst[i*n:(i+1)*n], src[i*ld:i*ld+n])
	}
}

// ToHalfRows sets rows of n values that are ld apart in dst to those of src, rounded.
func ToHalfRows(dst []uint16, src []float32, ld, rows, n int) {
	CheckMatrix("halves", rows, n, len(dst), ld)
	CheckMatrix("rows", rows, n, len(src), n)
	if cpu.HasAVX512 && n%16 == 0 && rows > 0 && n > 0 {
		toHalfRowsVec(&dst[0], &src[0], ld, rows, n)
		return
	}
	for i := range rows {
		ToBF16(dst[i*ld:i*ld+n], src[i*n:(i+1)*n])
	}
}

// AddHalf sets dst = x + y for y in bfloat16.
func AddHalf(dst, x []float32, y []uint16) {
	if n := len(dst); cpu.HasAVX512 && n > 0 {
		x, y = x[:n], y[:n]
		addHalfVec(&dst[0], &x[0], &y[0], n)
		return
	}
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		FromBF16(piece[:n], y[:n])
		Add(dst[:n], x[:n], piece[:n])
		dst, x, y = dst[n:], x[n:], y[n:]
	}
}

// DropoutAddHalf is DropoutAdd for y in bfloat16.
func DropoutAddHalf(dst, x []float32, y []uint16, bits []int32, scale float32) {
	if n := len(dst); cpu.HasAVX512 && n > 0 {
		x, y = x[:n], y[:n]
		dropoutAddHalfVec(&dst[0], &x[0], &y[0], bitsAt(bits, n), n, scale)
		return
	}
	var piece [halfPiece]float32
	for len(dst) > 0 {
		n := min(len(dst), halfPiece)
		FromBF16(piece[:n], y[:n])
		DropoutAdd(dst[:n], x[:n], piece[:n], bits, scale)
		dst, x, y, bits = dst[n:], x[n:], y[n:], bits[(n+31)/32:]
	}
}

// SumRowsBF16 is SumRows for x in bfloat16; the sums are float32.
func SumRowsBF16(dst []float32, x []uint16) {
	cols := len(dst)
	if len(x) > 0 && (cols == 0 || len(x)%cols != 0) {
		panic("kernel: vector: length is not a multiple of the row")
	}
	for ; len(x) > 0; x = x[cols:] {
		AddHalf(dst, dst, x[:cols])
	}
}
