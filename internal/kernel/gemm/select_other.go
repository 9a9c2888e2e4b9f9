//go:build !amd64 && !arm64

package gemm

// Tiled is the built-in product in assembly, which this processor lacks.
type Tiled struct{ Plain }

// New returns nil: there is no assembly here.
func New() *Tiled { return nil }

// Shared returns nil, like New.
func Shared() *Tiled { return nil }

// NewBF16 returns nil, like New.
func NewBF16() *Tiled { return nil }

// Transpose is never called.
func (*Tiled) Transpose(dst []float32, ldDst int, src []float32, ld, rows, n int) {}

// Multiply is never called.
func (*Tiled) Multiply(*Product) {}

// NewPacked is never called.
func (*Tiled) NewPacked(k, n int) *Packed { return nil }

// Panel is never called.
func (*Tiled) Panel() int { return 1 }

// Repack is never called.
func (*Tiled) Repack(p *Packed, x Matrix, trans bool, lo, hi int) {}

// AMX is the built-in product by the tile registers of AMX, which this processor lacks.
type AMX struct{ Tiled }

// NewAMX returns nil: there are no such registers here.
func NewAMX() *AMX { return nil }
