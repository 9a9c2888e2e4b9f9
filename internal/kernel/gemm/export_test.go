//go:build amd64 || arm64

package gemm

// NewPacking is New where both operands are packed whatever their size, as far as AVX2 and NEON go.
func NewPacking() *Tiled {
	t := New()
	if t != nil {
		t.rowsInPlace, t.small = false, 0
	}
	return t
}
