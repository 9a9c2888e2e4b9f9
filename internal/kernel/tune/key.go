package tune

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Key tells products apart that may have different best kernels.
type Key struct {
	TransA, TransB bool
	M, N, K        int
	LDA, LDB, LDC  int
	HalfA, HalfB   bool // stored in bfloat16
	BF16           bool // multiplied in bfloat16
	Bias           bool
	Adds           bool // to what C holds
	Activation     vector.Activation
	Finished       bool // what follows is done in the tiles of the built-in product: nothing else is a candidate
}

// KeyOf returns the key of p.
func KeyOf(p *gemm.Product) Key {
	k := Key{TransA: p.TransA, TransB: p.TransB, M: p.M, N: p.N, K: p.K, LDA: p.A.LD, LDB: p.B.LD, LDC: p.LDC,
		HalfA: p.A.BF16 != nil, HalfB: p.B.BF16 != nil, BF16: p.BF16, Bias: p.Bias != nil, Adds: p.Beta != 0}
	if p.Activated != nil {
		k.Activation = p.Activation
	}
	return k
}

// String writes all of the key, as in "NT 2080x1536x384 fp32 bias gelu": N and T say which operand
// is transposed. Strides are named where they are not the widths of rows.
func (k Key) String() string {
	letter := map[bool]byte{false: 'N', true: 'T'}
	var b strings.Builder
	fmt.Fprintf(&b, "%c%c %dx%dx%d", letter[k.TransA], letter[k.TransB], k.M, k.N, k.K)
	if k.BF16 {
		b.WriteString(" bf16")
	} else {
		b.WriteString(" fp32")
	}
	for _, part := range []struct {
		is   bool
		text string
	}{{k.HalfA, "A stored bf16"}, {k.HalfB, "B stored bf16"}, {k.Bias, "bias"},
		{k.Activation != 0, k.Activation.String()}, {k.Adds, "added"}, {k.Finished, "finished"}} {
		if part.is {
			b.WriteString(" " + part.text)
		}
	}
	widthA, widthB := k.K, k.N
	if k.TransA {
		widthA = k.M
	}
	if k.TransB {
		widthB = k.K
	}
	if k.LDA != widthA || k.LDB != widthB || k.LDC != k.N {
		fmt.Fprintf(&b, " strides %d %d %d", k.LDA, k.LDB, k.LDC)
	}
	return b.String()
}

// GFLOP returns the billions of floating-point operations of the product.
func (k Key) GFLOP() float64 { return 2e-9 * float64(k.M) * float64(k.N) * float64(k.K) }
