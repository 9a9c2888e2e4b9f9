package gemm

// Packed is a right operand in panels, as the tiles of a Tiled or of AMX read it: for a matrix that many products
// share, as weights do. It holds copies, so it is made again (Repack) where the matrix changes. K x N values take (N
// rounded up to whole panels) x K x 4 bytes in float32, half of it in bfloat16 and a quarter in int8. Many products may
// read one at once.
type Packed struct {
	K, N int
	// Made by of. A Tiled with other panels or blocks of terms ignores it and reads the matrix itself.
	of      *Tiled
	by      *AMX // or by this
	columns int  // N in whole panels
	words   []float32

	codes *codes // instead of words: of an Int8
}

// Bytes returns the size of the copy.
func (p *Packed) Bytes() int {
	if p.codes != nil {
		return len(p.codes.of) + 8*len(p.codes.scales)
	}
	return 4 * len(p.words)
}

// Int8 says whether the matrix is rounded to codes of 8 bits, and its products are those of an Int8.
func (p *Packed) Int8() bool { return p != nil && p.codes != nil }

// Packer makes right operands for its products.
type Packer interface {
	NewPacked(k, n int) *Packed
	Repack(p *Packed, x Matrix, trans bool, lo, hi int)
	Panel() int
}
