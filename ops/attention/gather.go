package attention

// gathered is memory of a thread for what does not lie in the operands as the kernel
// wants it: a block of the output where that is stored as bfloat16, and blocks of rows
// of one query each.
type gathered struct {
	q, dy, out []float32 // rows of E values; out receives the output, or dq
	lse        []float32
	bits       []int32
}

// gatherSizes returns the floats of q, dy, out and lse for a query.
func (a *attention) gatherSizes(s attentionDims, backward bool) (q, dy, out, lse int) {
	if !backward {
		out = s.e
	}
	if a.lq == 1 {
		q, out, lse = s.e, s.e, 1
		if backward {
			dy = s.e
		}
	}
	return q, dy, out, lse
}

// gatherSize returns the floats that use takes, whole cache lines.
func (a *attention) gatherSize(s attentionDims, backward bool) int {
	q, dy, out, lse := a.gatherSizes(s, backward)
	return ((q+dy+out+lse)*s.block + 15) / 16 * 16
}

// useGather takes memory for a block and returns the rest.
func (w *attentionWork) useGather(g *gathered, memory []float32, backward bool) []float32 {
	rest := memory[w.gatherSize(w.attentionDims, backward):]
	take := func(n int) []float32 {
		part := memory[:n*w.block]
		memory = memory[n*w.block:]
		return part
	}
	q, dy, out, lse := w.gatherSizes(w.attentionDims, backward)
	g.q, g.dy, g.out, g.lse = take(q), take(dy), take(out), take(lse)
	return rest
}

// gather sets the queries of rows, head h, as a block of the worker.
func (w *attentionWork) gather(t *attentionWorker, h int, rows []int32) {
	g, b := &t.gather, &t.block
	b.N, b.Q, b.LDQ, b.LSE, b.Scale = len(rows), g.q, w.e, g.lse, 1/w.keep
	w.gatherHeads(g.q, w.c.In[0].F32, h, rows)
	if w.bits >= 0 {
		b.Bits, b.Words = g.bits, w.words
		for i, r := range rows {
			copy(g.bits[i*w.words:(i+1)*w.words], w.c.In[w.bits].I32[(int(r)*w.heads+h)*w.words:])
		}
	}
}

// gatherHeads copies head h of rows (of D values) to dst.
func (w *attentionWork) gatherHeads(dst, src []float32, h int, rows []int32) {
	for i, r := range rows {
		copy(dst[i*w.e:(i+1)*w.e], src[int(r)*w.d+h*w.e:])
	}
}

// scatterHeads copies src to head h of rows.
func (w *attentionWork) scatterHeads(dst, src []float32, h int, rows []int32) {
	for i, r := range rows {
		copy(dst[int(r)*w.d+h*w.e:], src[i*w.e:(i+1)*w.e])
	}
}
