package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// job is the product in progress on all threads. It holds what the threads need,
// so that no closure has to be made for a product.
type job struct {
	gemm.Product
	path    path
	alongN  bool
	part    func(worker, lo, hi int)
	scratch operandScratch
}

// Multiply computes p on all threads. It must not be called inside For. The
// result depends on the arguments, the backend and the number of threads alone.
// A slice that is too short is a panic.
func (e *Engine) Multiply(p *gemm.Product) {
	p.Check()
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
	j.Product = gemm.Product{} // keep no buffer alive
}

// MultiplySerial is Multiply on the calling thread alone, for use inside For.
func (e *Engine) MultiplySerial(p *gemm.Product) {
	p.Check()
	e.serial(p)
}

// multiplyPart computes rows (or columns) lo to hi of the product in progress.
func (e *Engine) multiplyPart(_, lo, hi int) {
	p := e.job.Product
	if e.job.alongN {
		p.Columns(lo, hi)
	} else {
		p.Rows(lo, hi)
	}
	e.direct(&p, e.job.path)
}

// serial computes p on this thread.
func (e *Engine) serial(p *gemm.Product) {
	if p.M == 0 || p.N == 0 {
		return
	}
	if p.K == 0 || p.Alpha == 0 {
		for i := range p.M {
			gemm.ScaleRow(p.C[i*p.LDC:i*p.LDC+p.N], p.Beta)
		}
		p.Finish()
		return
	}
	w := e.pathOf(p)
	if !w.mustConvert(p) {
		e.direct(p, w)
		return
	}
	s := e.scratch.Take()
	q := *p
	e.convert(&q, w, s, false)
	e.direct(&q, w)
	e.scratch.Give(s)
}

// takesTiles says whether the built-in product computes p, which is one of float32.
func (e *Engine) takesTiles(p *gemm.Product) bool {
	return e.float != nil && (p.Packed != nil || p.M*p.N*p.K <= e.floatLimit || e.floatLayers && p.IsLayer())
}

// direct computes p, whose operands have the types that the path takes.
func (e *Engine) direct(p *gemm.Product, w path) {
	switch {
	case w == pathTiles:
		e.tiles.Multiply(p)
	case w == pathLibrary:
		e.library.BGEMM(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.BF16, p.A.LD, p.B.BF16, p.B.LD, p.Beta, p.C, p.LDC, p.Bias)
		if p.Activated != nil {
			q := *p
			q.Bias = nil
			q.Finish()
		}
	case e.takesTiles(p):
		e.float.Multiply(p)
	default:
		e.backend.SGEMM(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.F32, p.A.LD, p.B.F32, p.B.LD, p.Beta, p.C, p.LDC)
		p.Finish()
	}
}
