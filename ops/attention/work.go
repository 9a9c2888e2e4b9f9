package attention

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// attentionWork is what the threads of an attention op, forward or backward, share.
type attentionWork struct {
	*attention
	attentionDims
	c       *exec.Call
	workers []attentionWorker
	// order holds the rows sorted by key sequence, and those of sequence n are from
	// starts[n] to starts[n+1]. Without an index both are nil: row n is all.
	order, starts func() []int32
}

// attentionWorker is what belongs to one thread.
type attentionWorker struct {
	kernel *attend.Head
	block  attend.Block
	grads  attend.Grads
	gather gathered
	row    [1]int32 // the rows of a sequence without an index
}

// sizes returns what the kernel is for.
func (a *attention) sizes(s attentionDims, backward bool) attend.Sizes {
	return attend.Sizes{Keys: a.lk, Width: s.e, Queries: s.block, Backward: backward}
}

// workerScratch returns the scratch of one thread, whole cache lines.
func (a *attention) workerScratch(s attentionDims, backward bool) int {
	n := a.sizes(s, backward).Scratch()
	return (n+15)/16*16 + a.gatherSize(s, backward)
}

// newWork prepares a call.
func (a *attention) newWork(c *exec.Call, backward bool) *attentionWork {
	w := &attentionWork{attention: a, attentionDims: a.callDims(c), c: c,
		workers: make([]attentionWorker, c.Engine.Threads())}
	for i := range w.workers {
		t := &w.workers[i]
		t.kernel = c.Engine.NewAttention(a.sizes(w.attentionDims, backward))
		if a.lq == 1 && a.bits >= 0 {
			t.gather.bits = make([]int32, w.block*w.words)
		}
	}
	return w
}

// each calls visit for each sequence and head, on several threads: for rows of the
// sequence, all on one thread. Sequences are weighed by their rows.
func (w *attentionWork) each(backward bool, visit func(t *attentionWorker, n, h int, rows []int32)) func() {
	size := w.workerScratch(w.attentionDims, backward)
	use := func(worker int) *attentionWorker {
		t := &w.workers[worker]
		memory := w.c.Scratch[worker*size : (worker+1)*size]
		t.kernel.Use(w.useGather(&t.gather, memory, backward))
		return t
	}
	if w.bias >= 0 && backward && !w.own {
		body := func(worker, lo, hi int) {
			t := use(worker)
			for h := lo; h < hi; h++ {
				clear(w.biasOf(w.c.Aux[w.biasAux()].F32, 0, h, 0)[:w.lq*w.lk])
				for n := range w.seqs {
					t.row[0] = int32(n)
					visit(t, n, h, t.row[:])
				}
			}
		}
		return func() { w.c.Engine.For(w.heads, 1, body) }
	}
	if w.index < 0 {
		body := func(worker, lo, hi int) {
			t := use(worker)
			for i := lo; i < hi; i++ {
				t.row[0] = int32(i / w.heads)
				if w.own && backward {
					clear(w.biasOf(w.c.Aux[w.biasAux()].F32, i/w.heads, i%w.heads, 0)[:w.lq*w.lk])
				}
				visit(t, i/w.heads, i%w.heads, t.row[:])
			}
		}
		return func() { w.c.Engine.For(w.seqs*w.heads, 1, body) }
	}
	body := func(worker, lo, hi int) {
		t := use(worker)
		order, starts := w.order(), w.starts()
		for n := range w.seqs {
			rows := order[starts[n]:starts[n+1]]
			// A sequence takes a place for each row and one for itself, times heads.
			first, weight := (int(starts[n])+n)*w.heads, len(rows)+1
			for h := range w.heads {
				if at := first + h*weight; at >= lo && at < hi {
					visit(t, n, h, rows)
				}
			}
		}
	}
	return func() { w.c.Engine.For((w.rows+w.seqs)*w.heads, 1, body) }
}

// keysOf returns where the keys of sequence n, head h, begin; their values are D values on.
func (w *attentionWork) keysOf(n, h int) (kv exec.Array, at int) {
	if at = n*w.lk*w.ldkv + h*w.e; w.self {
		return w.c.In[0], at + w.d
	}
	return w.c.In[1], at
}

// keyGradsOf is keysOf for their gradients.
func (w *attentionWork) keyGradsOf(n, h int) (dkv exec.Array, at int) {
	if at = n*w.lk*w.ldkv + h*w.e; w.self {
		return w.c.Out, at + w.d
	}
	return w.c.Aux[0], at
}

// setKeys gives the kernel the first nk keys of sequence n, head h.
func (w *attentionWork) setKeys(t *attentionWorker, n, h, nk int) {
	kv, at := w.keysOf(n, h)
	t.kernel.SetKeys(rowsAt(kv, at, w.ldkv), rowsAt(kv, at+w.d, w.ldkv), nk)
}

// ahead tells the kernel what is written of rows[i] of sequence n, head h, and what comes after it: the same head
// of the next row, or the next head or sequence with its keys.
func (w *attentionWork) ahead(t *attentionWorker, n, h int, rows []int32, i int, backward bool) {
	r := int(rows[i])
	if !backward {
		writtenAhead(t, w.c.Out, r*w.lq*w.d+h*w.e, w.d, w.lq)
	} else {
		writtenAhead(t, w.c.Out, r*w.lq*w.ldq+h*w.e, w.ldq, w.lq)
		if i+1 == len(rows) {
			dkv, at := w.keyGradsOf(n, h)
			writtenAhead(t, dkv, at, w.ldkv, w.lk)
			writtenAhead(t, dkv, at+w.d, w.ldkv, w.lk)
		}
	}
	switch {
	case i+1 < len(rows):
		r = int(rows[i+1])
	case h+1 < w.heads:
		h, r = h+1, int(rows[0])
		w.keysAhead(t, n, h)
	case n+1 < w.seqs:
		h, n = 0, n+1
		w.keysAhead(t, n, h)
		r = n
		if w.index >= 0 {
			first := w.starts()[n]
			if first == w.starts()[n+1] {
				return
			}
			r = int(w.order()[first])
		}
	default:
		return
	}
	t.kernel.Ahead(rowsAt(w.c.In[0], r*w.lq*w.ldq+h*w.e, w.ldq), w.lq)
	if backward {
		t.kernel.Ahead(rowsAt(w.c.In[w.operands+1], r*w.lq*w.d+h*w.e, w.d), w.lq)
	}
}

// writtenAhead tells the kernel of rows that are written as bfloat16. Products ask for those of float32 themselves.
func writtenAhead(t *attentionWorker, x exec.Array, at, ld, rows int) {
	if x.BF16 != nil {
		t.kernel.Ahead(rowsAt(x, at, ld), rows)
	}
}

// rowsAt returns x from value at on as rows that lie ld values apart.
func rowsAt(x exec.Array, at, ld int) gemm.Matrix {
	if x.BF16 != nil {
		return gemm.Matrix{BF16: x.BF16[at:], LD: ld}
	}
	return gemm.Matrix{F32: x.F32[at:], LD: ld}
}

// keysAhead tells the kernel of the keys and values of sequence n, head h.
func (w *attentionWork) keysAhead(t *attentionWorker, n, h int) {
	kv, at := w.keysOf(n, h)
	t.kernel.Ahead(rowsAt(kv, at, w.ldkv), w.lk)
	t.kernel.Ahead(rowsAt(kv, at+w.d, w.ldkv), w.lk)
}

// setBlock sets the queries i0 to i0+nq of row r, head h, and their log-sum-exps.
func (w *attentionWork) setBlock(t *attentionWorker, r, h, i0, nq int, lse []float32) {
	b := &t.block
	b.N, b.Scale = nq, 1/w.keep
	b.Q = rowsAt(w.c.In[0], (r*w.lq+i0)*w.ldq+h*w.e, w.ldq)
	first := (r*w.heads+h)*w.lq + i0
	b.LSE = lse[first:]
	if w.bits >= 0 {
		b.Bits, b.Words = w.c.In[w.bits].I32[first*w.words:], w.words
	}
	b.Causal, b.First = w.causal, i0
	if w.bias >= 0 {
		b.Bias, b.LDBias = w.biasOf(w.c.In[w.bias].F32, r, h, i0), w.lk
	}
}

// biasOf returns the rows of a bias or its gradient for row r and head h, from query i0 on.
func (w *attentionWork) biasOf(x []float32, r, h, i0 int) []float32 {
	if w.own {
		h += r * w.heads
	}
	return x[(h*w.lq+i0)*w.lk:]
}

// run returns how many of the first rows see as many keys as the first one, up to a
// block.
func (w *attentionWork) run(rows []int32) int {
	n, nk := 1, w.keys(w.c, int(rows[0]))
	for n < min(len(rows), w.block) && w.keys(w.c, int(rows[n])) == nk {
		n++
	}
	return n
}
