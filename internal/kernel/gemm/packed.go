package gemm

// Packed is a right operand in panels, as the tiles of a Tiled or of AMX read it: for a matrix that many products
// share, as weights do. It holds copies, so it is made again (Repack) where the matrix changes. K x N values take (N
// rounded up to whole panels) x K x 4 bytes in float32 and half of it in bfloat16. Many products may read one at once.
type Packed struct {
	K, N int
	// Made by of. A Tiled with other panels or blocks of terms ignores it and reads the matrix itself.
	of      *Tiled
	by      *AMX // or by this
	columns int  // N in whole panels
	words   []float32
}

// Bytes returns the size of the copy.
func (p *Packed) Bytes() int { return 4 * len(p.words) }

// Packer makes right operands for its products.
type Packer interface {
	NewPacked(k, n int) *Packed
	Repack(p *Packed, x Matrix, trans bool, lo, hi int)
	Panel() int
}
