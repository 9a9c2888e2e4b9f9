package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// job is the product in progress on all threads. It holds what the threads need,
// so that no closure has to be made for a product.
type job struct {
	gemm.Product
	alongN  bool
	part    func(worker, lo, hi int)
	scratch operandScratch
}

// Multiply computes p on all threads. It must not be called inside For. The
// result depends on the arguments, the backend and the number of threads alone. A slice that is too short is a panic.
func (e *Engine) Multiply(p *gemm.Product) {
	p.Check()
	j := &e.job
	alongN, chunks, step := splitProduct(p.M, p.N, p.K, e.threads)
	if chunks == 1 || p.Alpha == 0 {
		e.serial(p)
		return
	}
	j.Product, j.alongN = *p, alongN
	if e.converts(p) {
		e.convert(&j.Product, &j.scratch, true)
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
	e.compute(&p)
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
	if !e.converts(p) {
		e.compute(p)
		return
	}
	s := e.scratch.Take()
	q := *p
	e.convert(&q, s, false)
	e.compute(&q)
	e.scratch.Give(s)
}
