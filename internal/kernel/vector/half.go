package vector

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

// SumRowsBF16 is SumRows for x in bfloat16; the sums are float32.
func SumRowsBF16(dst []float32, x []uint16) {
	cols := len(dst)
	if len(x) > 0 && (cols == 0 || len(x)%cols != 0) {
		panic("kernel: vector: length is not a multiple of the row")
	}
	var piece [halfPiece]float32
	for ; len(x) > 0; x = x[cols:] {
		for at := 0; at < cols; at += halfPiece {
			to := min(at+halfPiece, cols)
			row := piece[:to-at]
			FromBF16(row, x[at:to])
			Add(dst[at:to], dst[at:to], row)
		}
	}
}
