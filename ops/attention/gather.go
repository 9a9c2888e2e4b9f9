package attention

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// gathered is memory of a thread for what does not lie in the operands as the kernel
// wants it: blocks of rows of one query each, and gradients of keys that are stored as bfloat16, to which
// several rows add. Matrices have rows of E values.
type gathered struct {
	q, dy, out []float32 // of a block; out receives the output, or dq
	dk, dv     []float32 // of a sequence
	lse        []float32
	bits       []int32
}

// gatherSize returns the floats that useGather takes, whole cache lines.
func (a *attention) gatherSize(s attentionDims, backward bool) int {
	block, keys := 2*s.e+1, 0
	if backward {
		block, keys = 3*s.e+1, 2*s.e
	}
	return (block*s.block + keys*a.lk + 15) / 16 * 16
}

// useGather takes memory for a block and returns the rest.
func (w *attentionWork) useGather(g *gathered, memory []float32, backward bool) []float32 {
	rest := memory[w.gatherSize(w.attentionDims, backward):]
	take := func(rows, n int) []float32 {
		part := memory[:n*rows]
		memory = memory[n*rows:]
		return part
	}
	g.q, g.out = take(w.block, w.e), take(w.block, w.e)
	if backward {
		g.dy, g.dk, g.dv = take(w.block, w.e), take(w.lk, w.e), take(w.lk, w.e)
	}
	g.lse = take(w.block, 1)
	return rest
}

// gather sets the queries of rows, head h, as a block of the worker.
func (w *attentionWork) gather(t *attentionWorker, h int, rows []int32) {
	g, b := &t.gather, &t.block
	b.N, b.Q, b.LSE, b.Scale = len(rows), gemm.Matrix{F32: g.q, LD: w.e}, g.lse, 1/w.keep
	w.gatherHeads(g.q, w.c.In[0], h, rows)
	if w.bits >= 0 {
		b.Bits, b.Words = g.bits, w.words
		for i, r := range rows {
			copy(g.bits[i*w.words:(i+1)*w.words], w.c.In[w.bits].I32[(int(r)*w.heads+h)*w.words:])
		}
	}
}

// gatherHeads copies head h of rows (of D values) to dst.
func (w *attentionWork) gatherHeads(dst []float32, src exec.Array, h int, rows []int32) {
	for i, r := range rows {
		w.load(dst[i*w.e:], src, int(r)*w.d+h*w.e, w.d, 1)
	}
}

// scatterHeads copies src to head h of rows.
func (w *attentionWork) scatterHeads(dst exec.Array, src []float32, h int, rows []int32) {
	for i, r := range rows {
		w.store(dst, int(r)*w.d+h*w.e, w.d, src[i*w.e:], 1)
	}
}

// load sets rows of E values of dst to those of src, the first of which begins at value at, ld
// values apart.
func (w *attentionWork) load(dst []float32, src exec.Array, at, ld, rows int) {
	if src.BF16 != nil {
		vector.FromHalfRows(dst, src.BF16[at:], ld, rows, w.e)
		return
	}
	for i := range rows {
		copy(dst[i*w.e:(i+1)*w.e], src.F32[at+i*ld:])
	}
}

// store is load the other way.
func (w *attentionWork) store(dst exec.Array, at, ld int, src []float32, rows int) {
	if dst.BF16 != nil {
		vector.ToHalfRows(dst.BF16[at:], src, ld, rows, w.e)
		return
	}
	for i := range rows {
		copy(dst.F32[at+i*ld:], src[i*w.e:(i+1)*w.e])
	}
}

// zero sets rows of E values of x to 0, the first of which begins at value at, ld values apart.
func (w *attentionWork) zero(x exec.Array, at, ld, rows int) {
	for i := range rows {
		if from := at + i*ld; x.BF16 != nil {
			clear(x.BF16[from : from+w.e])
		} else {
			clear(x.F32[from : from+w.e])
		}
	}
}
