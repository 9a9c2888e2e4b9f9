package attention

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// backward is the gradient op of the attention: operands are the forward's, its
// output and the output's gradient. The result is dqkv, or dq with dkv as
// first auxiliary result, and then the bias's gradient; attend.Head says how they are
// computed. Work is split over (key sequence, head), so that no two threads add to the same
// dK and dV, and rows that share a key sequence are added in row order. With a bias it is
// split over heads: all sequences add to its gradient, in their order, unless each has its own.
func (a *attention) backward() *op.Op {
	o := &op.Op{
		Kind: "self attention dx", Args: a.args(), Diff: make([]bool, a.operands+2),
		// Of the output the statistics next to it are what is read.
		ReadsHalf: append(a.readsHalf(), a.operands, a.operands+1), WritesHalf: []int{op.Output},
	}
	if !a.self {
		o.Kind, o.WritesHalf = "cross attention dx", []int{op.Output, 0}
	}
	o.Aux = func(in []tensor.Shape) (aux []exec.AuxSpec) {
		if !a.self {
			aux = append(aux, exec.AuxSpec{Shape: in[1]})
		}
		if a.bias >= 0 {
			aux = append(aux, exec.AuxSpec{Shape: in[a.bias]})
		}
		return aux
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		want, err := a.shape(in)
		if err != nil {
			return nil, err
		}
		dy := in[a.operands+1]
		return in[0].Clone(), op.Need(dy.Eq(want), "dy must have shape %v (got %v)", want, dy)
	}
	o.Scratch = func(in []tensor.Shape, threads int) int {
		return threads * a.workerScratch(a.dims(in), true)
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 5 * a.product(in) }
	o.Host = a.prepareBackward
	if !a.own {
		o.On = a.onCUDA().Backward()
	}
	return o
}

// biasAux is the place of the bias's gradient among the auxiliary results.
func (a *attention) biasAux() int {
	if a.self {
		return 0
	}
	return 1
}

// keysGradient exposes dkv as a node.
func (a *attention) keysGradient(shape tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "cross attention dkv", Args: fmt.Sprint(shape), Diff: []bool{false}, Alias: &[2]int{0, 0},
		Shape: func([]tensor.Shape) (tensor.Shape, error) { return shape, nil },
	}
}

func (a *attention) prepareBackward(c *exec.Call) (exec.Step, error) {
	w := a.newWork(c, true)
	w.order = func() []int32 { return c.InAux[a.operands][1].I32 }
	w.starts = func() []int32 { return c.InAux[a.operands][2].I32 }
	run := w.each(true, w.sequenceGradient)
	return func() error {
		run()
		return nil
	}, nil
}

// sortByKey writes to order the positions of key sorted by value, equal ones in
// order, and to starts where each value's begin: starts[v] to starts[v+1].
func sortByKey(order, starts, key []int32) {
	clear(starts)
	for _, k := range key {
		starts[k+1]++
	}
	for v := 1; v < len(starts); v++ {
		starts[v] += starts[v-1]
	}
	for r, k := range key {
		order[starts[k]] = int32(r)
		starts[k]++
	}
	for v := len(starts) - 1; v > 0; v-- { // each start moved to its end: shift back
		starts[v] = starts[v-1]
	}
	starts[0] = 0
}

// sequenceGradient handles rows, all those that attend to sequence n, for head h.
func (w *attentionWork) sequenceGradient(t *attentionWorker, n, h int, rows []int32) {
	g := &t.grads
	dkv, at := w.keyGradsOf(n, h)
	if dkv.BF16 != nil {
		g.DK, g.DV, g.LDDKV = t.gather.dk, t.gather.dv, w.e
	} else {
		g.DK, g.DV, g.LDDKV = dkv.F32[at:], dkv.F32[at+w.d:], w.ldkv
	}
	g.Add = false
	for seen := 0; len(rows) > 0; {
		count, nk := w.run(rows), w.keys(w.c, int(rows[0]))
		if nk > 0 && nk != seen {
			w.setKeys(t, n, h, nk)
			seen = nk
		}
		switch {
		case nk == 0:
			w.noGradient(h, rows[:count])
		case w.lq == 1 && count > 1:
			w.gatheredGradient(t, h, nk, rows[:count])
		default:
			for i, r := range rows[:count] {
				w.ahead(t, n, h, rows, i, true)
				w.rowGradient(t, int(r), h, nk)
			}
		}
		rows = rows[count:]
	}
	if !g.Add {
		w.clearUnseen(g, 0)
	}
	if dkv.BF16 != nil {
		t.kernel.Round(rowsAt(dkv, at, w.ldkv), g.DK, w.lk)
		t.kernel.Round(rowsAt(dkv, at+w.d, w.ldkv), g.DV, w.lk)
	}
}

// rowGradient computes dQ of row r, head h, and adds to dK and dV.
func (w *attentionWork) rowGradient(t *attentionWorker, r, h, nk int) {
	lse, dy, dq := w.c.InAux[w.operands][0].F32, w.c.In[w.operands+1], w.c.Out
	for i0 := 0; i0 < w.lq; i0 += w.block {
		n := min(w.block, w.lq-i0)
		w.setBlock(t, r, h, i0, n, lse)
		at, to := (r*w.lq+i0)*w.d+h*w.e, (r*w.lq+i0)*w.ldq+h*w.e
		t.grads.DOut, t.grads.DQ = rowsAt(dy, at, w.d), rowsAt(dq, to, w.ldq)
		if w.bias >= 0 {
			t.grads.DBias = w.biasOf(w.c.Aux[w.biasAux()].F32, r, h, i0)
		}
		w.blockGradient(t, nk)
	}
}

// gatheredGradient is rowGradient for rows of one query each, as one block.
func (w *attentionWork) gatheredGradient(t *attentionWorker, h, nk int, rows []int32) {
	w.gather(t, h, rows)
	m := &t.gather
	w.gatherHeads(m.dy, w.c.In[w.operands+1], h, rows)
	for i, r := range rows {
		m.lse[i] = w.c.InAux[w.operands][0].F32[int(r)*w.heads+h]
	}
	t.grads.DOut, t.grads.DQ = gemm.Matrix{F32: m.dy, LD: w.e}, gemm.Matrix{F32: m.out, LD: w.e}
	w.blockGradient(t, nk)
	w.scatterHeads(w.c.Out, m.out, h, rows)
}

// blockGradient computes the gradients of a block that sees nk keys.
func (w *attentionWork) blockGradient(t *attentionWorker, nk int) {
	t.kernel.Backward(&t.block, &t.grads)
	if !t.grads.Add { // the first one also writes the gradients of the keys it does not see
		w.clearUnseen(&t.grads, nk)
		t.grads.Add = true
	}
}

// noGradient sets the gradients of queries without keys to 0.
func (w *attentionWork) noGradient(h int, rows []int32) {
	for _, r := range rows {
		w.zero(w.c.Out, int(r)*w.lq*w.ldq+h*w.e, w.ldq, w.lq)
	}
}

// clearUnseen zeroes the gradients of the keys from nk on.
func (w *attentionWork) clearUnseen(g *attend.Grads, nk int) {
	if nk < w.lk {
		w.zero(exec.Array{F32: g.DK}, nk*g.LDDKV, g.LDDKV, w.lk-nk)
		w.zero(exec.Array{F32: g.DV}, nk*g.LDDKV, g.LDDKV, w.lk-nk)
	}
}
