package gemm

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Matrix is an operand of a Product as it is stored: rows of LD values, as
// float32 or as bfloat16 (the upper half of a float32). Exactly one of F32 and
// BF16 is set.
type Matrix struct {
	F32  []float32
	BF16 []uint16
	LD   int
}

// Length returns the number of values.
func (x Matrix) Length() int { return max(len(x.F32), len(x.BF16)) }

// From returns the matrix that begins at value i.
func (x Matrix) From(i int) Matrix {
	if x.BF16 != nil {
		return Matrix{BF16: x.BF16[i:], LD: x.LD}
	}
	return Matrix{F32: x.F32[i:], LD: x.LD}
}

// Product is a matrix product with what follows it:
//
//	C         = Alpha*op(A)*op(B) + Beta*C + Bias
//	Activated = Activation(C)
//
// or, with Before, the gradient of what an activation was applied to:
//
//	C = Alpha*op(A)*op(B) * Activation'(Before)
//
// op transposes if asked: op(A) is M x K, op(B) is K x N, C is M x N. With Beta 0,
// C is not read. C and Activated must not overlap anything else, but Activated may be C: the value before is not kept
// then.
type Product struct {
	TransA, TransB bool
	M, N, K        int
	Alpha, Beta    float32
	A, B           Matrix
	C              []float32
	LDC            int
	// BF16 rounds operands that are float32 to bfloat16 (to nearest, ties to even)
	// and multiplies in bfloat16 with sums in float32; values below 2^-126 in size
	// may count as 0. Without it a bfloat16 operand is widened, which is exact, and
	// the product is one of float32.
	BF16 bool
	// Bias is added to each row of C (N), or nil.
	Bias []float32
	// Activated receives Activation(C), with the stride of C, or is nil. C keeps the
	// value before.
	Activated  []float32
	Activation vector.Activation
	// Half receives C rounded to bfloat16, with the stride of C, or is nil. C is memory to
	// work in then: what it holds afterwards is undefined. Activated is made of what Half holds.
	Half []uint16
	// ActivatedHalf is Activated rounded to bfloat16, instead of it.
	ActivatedHalf []uint16
	// Before is what Activation was applied to, with the stride of C; empty: this is no
	// gradient. It goes with neither a Bias nor a result of the activation.
	Before Matrix
	// Packed is op(B) packed before, or nil. It saves the time of packing where the product is of the Tiled that made
	// it, and changes no bit of the result; B must be there too, for others. One of an Int8 makes the product one in int8,
	// of an A of float32 that is not transposed, with Alpha 1 and Beta 0.
	Packed     *Packed
	PackedFrom int // column of Packed that is column 0 of op(B)
}

// Rows narrows p to rows lo to hi of C.
func (p *Product) Rows(lo, hi int) {
	p.M = hi - lo
	p.C = p.C[lo*p.LDC:]
	p.advance(lo * p.LDC)
	if p.TransA {
		p.A = p.A.From(lo)
	} else {
		p.A = p.A.From(lo * p.A.LD)
	}
}

// advance moves what has the shape of C, but for C, to its value n.
func (p *Product) advance(n int) {
	if p.Activated != nil {
		p.Activated = p.Activated[n:]
	}
	if p.Half != nil {
		p.Half = p.Half[n:]
	}
	if p.ActivatedHalf != nil {
		p.ActivatedHalf = p.ActivatedHalf[n:]
	}
	if p.Before.Length() > 0 {
		p.Before = p.Before.From(n)
	}
}

// Columns narrows p to columns lo to hi of C.
func (p *Product) Columns(lo, hi int) {
	p.N = hi - lo
	p.PackedFrom += lo
	p.C = p.C[lo:]
	p.advance(lo)
	if p.Bias != nil {
		p.Bias = p.Bias[lo:hi]
	}
	if p.TransB {
		p.B = p.B.From(lo * p.B.LD)
	} else {
		p.B = p.B.From(lo)
	}
}

// Finish does what follows the product, in one pass over C.
func (p *Product) Finish() {
	if p.Bias == nil && !p.Follows() {
		return
	}
	for i := range p.M {
		p.finishRow(i, 0, p.C[i*p.LDC:][:p.N])
	}
}

// Follows says whether more than a bias follows the product.
func (p *Product) Follows() bool {
	return p.Activated != nil || p.Half != nil || p.ActivatedHalf != nil || p.Before.Length() > 0
}

// finishRow does what follows the product for the part of row i that begins with column j:
// row holds that of the product, and is C or memory in its place.
func (p *Product) finishRow(i, j int, row []float32) {
	at, to := i*p.LDC+j, i*p.LDC+j+len(row)
	switch {
	case p.Half != nil && p.Before.BF16 != nil:
		p.Activation.GradHalves(p.Half[at:to], p.Before.BF16[at:to], row)
		return
	case p.Half != nil && p.Bias != nil && p.ActivatedHalf != nil:
		p.Activation.AddToBF16(p.Half[at:to], p.ActivatedHalf[at:to], row, p.Bias[j:])
		return
	case p.Half != nil && p.Bias != nil && p.Activated == nil:
		vector.AddToBF16(p.Half[at:to], row, p.Bias[j:])
		return
	case p.Before.F32 != nil:
		p.Activation.Grad(row, p.Before.F32[at:to], row)
	case p.Before.BF16 != nil:
		p.Activation.GradOfHalf(row, p.Before.BF16[at:to], row)
	case p.Bias == nil:
	case p.Activated != nil && p.Half == nil && !p.inPlace():
		p.Activation.AddBias(row, p.Activated[at:to], p.Bias[j:j+len(row)])
		return
	default:
		vector.Add(row, row, p.Bias[j:j+len(row)])
	}
	if p.Half != nil {
		vector.ToBF16(p.Half[at:to], row)
		if p.ActivatedHalf != nil {
			p.Activation.HalfToBF16(p.ActivatedHalf[at:to], p.Half[at:to])
			return
		}
		if p.Activated != nil {
			vector.FromBF16(row, p.Half[at:to])
		}
	}
	switch {
	case p.Activated != nil:
		p.Activation.Apply(p.Activated[at:to], row)
	case p.ActivatedHalf != nil:
		p.Activation.ToBF16(p.ActivatedHalf[at:to], row)
	}
}

// FinishesTiles says whether what follows is done for a part of C while that is in the cache: where it leaves one
// result, or results of bfloat16.
func (p *Product) FinishesTiles() bool { return p.Half != nil || p.inPlace() }

// inPlace says whether the activation takes the place of what it is applied to.
func (p *Product) inPlace() bool {
	return p.M > 0 && p.Activated != nil && &p.Activated[0] == &p.C[0]
}

// Check panics if a slice is too short for the product or a stride is shorter
// than its row: the kernels would write outside the slice.
func (p *Product) Check() {
	if p.M < 0 || p.N < 0 || p.K < 0 {
		panic(fmt.Sprintf("kernel: product: negative size (got m %d, n %d, k %d)", p.M, p.N, p.K))
	}
	if p.A.F32 != nil && p.A.BF16 != nil || p.B.F32 != nil && p.B.BF16 != nil {
		panic("kernel: product: an operand has both F32 and BF16: set one")
	}
	ra, ca := p.StoredA()
	rb, cb := p.StoredB()
	vector.CheckMatrix("A", ra, ca, p.A.Length(), p.A.LD)
	vector.CheckMatrix("B", rb, cb, p.B.Length(), p.B.LD)
	vector.CheckMatrix("C", p.M, p.N, len(p.C), p.LDC)
	for _, x := range []struct {
		name   string
		n      int
		active bool
	}{
		{"Activated", len(p.Activated), true}, {"Half", len(p.Half), false},
		{"ActivatedHalf", len(p.ActivatedHalf), true}, {"Before", p.Before.Length(), true},
	} {
		if x.n == 0 {
			continue
		}
		vector.CheckMatrix(x.name, p.M, p.N, x.n, p.LDC)
		if x.active && p.Activation == 0 {
			panic("kernel: product: " + x.name + " without an Activation")
		}
	}
	if p.Half != nil && p.Beta != 0 {
		panic("kernel: product: Half with a Beta: sums are made in float32")
	}
	if x := p.Packed; x != nil && (x.K != p.K || p.PackedFrom < 0 || p.PackedFrom+p.N > x.N) {
		panic(fmt.Sprintf("kernel: product: Packed must have K = %d rows and the N = %d columns from %d on (got %d x %d): pack the matrix that B is", p.K, p.N, p.PackedFrom, x.K, x.N))
	}
	if p.Packed.Int8() && (p.TransA || p.A.F32 == nil || p.Alpha != 1 || p.Beta != 0) {
		panic("kernel: product: Packed in int8 wants an A of float32 as it is stored, Alpha 1 and Beta 0")
	}
	if p.Bias != nil && len(p.Bias) != p.N {
		panic(fmt.Sprintf("kernel: product: Bias must have N = %d values (got %d)", p.N, len(p.Bias)))
	}
}

// StoredA returns the rows and columns of A as stored.
func (p *Product) StoredA() (rows, columns int) {
	if p.TransA {
		return p.K, p.M
	}
	return p.M, p.K
}

// StoredB returns the rows and columns of B as stored.
func (p *Product) StoredB() (rows, columns int) {
	if p.TransB {
		return p.N, p.K
	}
	return p.K, p.N
}
