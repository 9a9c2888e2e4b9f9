package kernel

import "fmt"

// Matrix is an operand of a Product as it is stored: rows of LD values, as
// float32 or as bfloat16 (the upper half of a float32). Exactly one of F32 and
// BF16 is set.
type Matrix struct {
	F32  []float32
	BF16 []uint16
	LD   int
}

// length returns the number of values.
func (x Matrix) length() int { return max(len(x.F32), len(x.BF16)) }

// from returns the matrix that begins at value i.
func (x Matrix) from(i int) Matrix {
	if x.BF16 != nil {
		return Matrix{BF16: x.BF16[i:], LD: x.LD}
	}
	return Matrix{F32: x.F32[i:], LD: x.LD}
}

// Product is a matrix product with what follows it:
//
//	C    = Alpha*op(A)*op(B) + Beta*C + Bias
//	GELU = gelu(C)
//
// op transposes if asked: op(A) is M x K, op(B) is K x N, C is M x N. With Beta 0,
// C is not read. C and GELU must not overlap anything else.
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
	// GELU receives gelu(C) in the exact erf form, with the stride of C, or is nil.
	// C keeps the value before.
	GELU []float32
}

// job is the product in progress on all threads. It holds what the threads need,
// so that no closure has to be made for a product.
type job struct {
	Product
	path    path
	alongN  bool
	part    func(worker, lo, hi int)
	scratch operandScratch
}

// Multiply computes p on all threads. It must not be called inside For. The
// result depends on the arguments, the backend and the number of threads alone.
// A slice that is too short is a panic.
func (e *Engine) Multiply(p *Product) {
	p.check()
	j := &e.job
	alongN, chunks, step := splitProduct(p.M, p.N, p.K, e.threads)
	if chunks == 1 || p.Alpha == 0 {
		e.serial(p)
		return
	}
	j.Product, j.path, j.alongN = *p, e.pathOf(p), alongN
	if j.path.mustConvert(p) {
		e.convert(&j.Product, j.path, &j.scratch, true)
	}
	items := p.M
	if alongN {
		items = p.N
	}
	e.pool.run(items, step, chunks, j.part)
	j.Product = Product{} // keep no buffer alive
}

// MultiplySerial is Multiply on the calling thread alone, for use inside For.
func (e *Engine) MultiplySerial(p *Product) {
	p.check()
	e.serial(p)
}

// multiplyPart computes rows (or columns) lo to hi of the product in progress.
func (e *Engine) multiplyPart(_, lo, hi int) {
	p := e.job.Product
	if e.job.alongN {
		p.columns(lo, hi)
	} else {
		p.rows(lo, hi)
	}
	e.direct(&p, e.job.path)
}

// rows narrows p to rows lo to hi of C.
func (p *Product) rows(lo, hi int) {
	p.M = hi - lo
	p.C = p.C[lo*p.LDC:]
	if p.GELU != nil {
		p.GELU = p.GELU[lo*p.LDC:]
	}
	if p.TransA {
		p.A = p.A.from(lo)
	} else {
		p.A = p.A.from(lo * p.A.LD)
	}
}

// columns narrows p to columns lo to hi of C.
func (p *Product) columns(lo, hi int) {
	p.N = hi - lo
	p.C = p.C[lo:]
	if p.GELU != nil {
		p.GELU = p.GELU[lo:]
	}
	if p.Bias != nil {
		p.Bias = p.Bias[lo:hi]
	}
	if p.TransB {
		p.B = p.B.from(lo * p.B.LD)
	} else {
		p.B = p.B.from(lo)
	}
}

// serial computes p on this thread.
func (e *Engine) serial(p *Product) {
	if p.M == 0 || p.N == 0 {
		return
	}
	if p.K == 0 || p.Alpha == 0 {
		for i := range p.M {
			scaleRow(p.C[i*p.LDC:i*p.LDC+p.N], p.Beta)
		}
		p.finish()
		return
	}
	w := e.pathOf(p)
	if !w.mustConvert(p) {
		e.direct(p, w)
		return
	}
	s := e.scratch.take()
	q := *p
	e.convert(&q, w, s, false)
	e.direct(&q, w)
	e.scratch.give(s)
}

// direct computes p, whose operands have the types that the path takes.
func (e *Engine) direct(p *Product, w path) {
	switch {
	case w == pathTiles:
		e.tiles.multiply(p)
	case w == pathLibrary:
		e.library.bgemm(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.BF16, p.A.LD, p.B.BF16, p.B.LD, p.Beta, p.C, p.LDC, p.Bias)
		if p.GELU != nil {
			q := *p
			q.Bias = nil
			q.finish()
		}
	case e.float != nil && (p.M*p.N*p.K <= e.floatLimit || e.floatLayers && p.isLayer()):
		e.float.multiply(p)
	default:
		e.backend.sgemm(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.F32, p.A.LD, p.B.F32, p.B.LD, p.Beta, p.C, p.LDC)
		p.finish()
	}
}

// isLayer says whether p is the forward pass of a linear layer: rows times weights of
// which each output has a row, and a bias.
func (p *Product) isLayer() bool { return !p.TransA && p.TransB && p.Bias != nil }

// finish does what follows the product, in one pass over C. It comes after the
// whole of a thread's part for the libraries too: cut into blocks of rows that stay
// in the cache, oneDNN packs B again for each, and the product with what follows
// took 4 to 20 % longer with blocks of 128 to 512 rows at 2080x1536x384,
// 3840x1536x384 and 2056x3072x768, where the bias costs 1 to 4 % and bias with GELU
// 4 to 8 % of the product.
func (p *Product) finish() {
	if p.Bias == nil && p.GELU == nil {
		return
	}
	for i := range p.M {
		row := p.C[i*p.LDC:][:p.N]
		switch {
		case p.GELU == nil:
			Add(row, row, p.Bias)
		case p.Bias == nil:
			GELU(p.GELU[i*p.LDC:][:p.N], row)
		default:
			BiasGELU(row, p.GELU[i*p.LDC:][:p.N], p.Bias)
		}
	}
}

// check panics if a slice is too short for the product or a stride is shorter
// than its row: the kernels would write outside the slice.
func (p *Product) check() {
	if p.M < 0 || p.N < 0 || p.K < 0 {
		panic(fmt.Sprintf("kernel: product: negative size (got m %d, n %d, k %d)", p.M, p.N, p.K))
	}
	if p.A.F32 != nil && p.A.BF16 != nil || p.B.F32 != nil && p.B.BF16 != nil {
		panic("kernel: product: an operand has both F32 and BF16: set one")
	}
	ra, ca := p.storedA()
	rb, cb := p.storedB()
	checkMatrix("A", ra, ca, p.A.length(), p.A.LD)
	checkMatrix("B", rb, cb, p.B.length(), p.B.LD)
	checkMatrix("C", p.M, p.N, len(p.C), p.LDC)
	if p.GELU != nil {
		checkMatrix("GELU", p.M, p.N, len(p.GELU), p.LDC)
	}
	if p.Bias != nil && len(p.Bias) != p.N {
		panic(fmt.Sprintf("kernel: product: Bias must have N = %d values (got %d)", p.N, len(p.Bias)))
	}
}

// storedA returns the rows and columns of A as stored.
func (p *Product) storedA() (rows, columns int) {
	if p.TransA {
		return p.K, p.M
	}
	return p.M, p.K
}

// storedB returns the rows and columns of B as stored.
func (p *Product) storedB() (rows, columns int) {
	if p.TransB {
		return p.N, p.K
	}
	return p.K, p.N
}

func checkMatrix(name string, rows, columns, length, ld int) {
	if rows == 0 || columns == 0 {
		return
	}
	if ld < columns || length < (rows-1)*ld+columns {
		panic(fmt.Sprintf("kernel: product: %s is %d x %d with stride %d, which does not fit (slice of %d)", name, rows, columns, ld, length))
	}
}
