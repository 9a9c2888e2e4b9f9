package attention

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the attention op. Its auxiliary result is the log-sum-exp of every
// query's scores, (R, H, Lq), from which the backward op makes the probabilities
// again: they are never kept. With an index, the rows sorted by key sequence (R) and
// where each sequence's rows begin (N+1) follow.
func (a *attention) forward() *op.Op {
	o := &op.Op{Kind: "self attention", Args: a.args(), Shape: a.shape, Diff: make([]bool, a.operands),
		ReadsHalf: a.readsHalf(), WritesHalf: []int{op.Output}}
	o.Diff[0] = true
	if !a.self {
		o.Kind = "cross attention"
		o.Diff[1] = true
	}
	if a.bias >= 0 {
		o.Diff[a.bias] = true
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		s := a.dims(in)
		aux := []exec.AuxSpec{{Shape: tensor.Shape{s.rows, a.heads, a.lq}}}
		if a.index >= 0 {
			aux = append(aux,
				exec.AuxSpec{Shape: tensor.Shape{s.rows}, Int: true},
				exec.AuxSpec{Shape: tensor.Shape{s.seqs + 1}, Int: true})
		}
		return aux
	}
	o.Scratch = func(in []tensor.Shape, threads int) int {
		return threads * a.workerScratch(a.dims(in), false)
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * a.product(in) }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		w := a.newWork(c, false)
		w.order, w.starts = func() []int32 { return c.Aux[1].I32 }, func() []int32 { return c.Aux[2].I32 }
		run := w.each(false, w.attend)
		return func() error {
			if err := a.checkValues(c, w.seqs); err != nil {
				return err
			}
			if a.index >= 0 {
				sortByKey(c.Aux[1].I32, c.Aux[2].I32, c.In[a.index].I32)
			}
			run()
			return nil
		}, nil
	}
	if !a.own {
		o.On = a.onCUDA().Forward()
	}
	o.Grad = a.gradients
	return o
}

// product returns the floating-point operations of one of the attention's matrix
// products over all rows and heads, with every key counted.
func (a *attention) product(in []tensor.Shape) int64 {
	s := a.dims(in)
	return 2 * int64(s.rows) * int64(a.lq) * int64(a.lk) * int64(s.d)
}

// attend computes the outputs of rows, head h, which attend to sequence n. The keys are
// packed once for rows that see as many of them.
func (w *attentionWork) attend(t *attentionWorker, n, h int, rows []int32) {
	for seen := 0; len(rows) > 0; {
		count, nk := w.run(rows), w.keys(w.c, int(rows[0]))
		if nk > 0 && nk != seen {
			w.setKeys(t, n, h, nk)
			seen = nk
		}
		switch {
		case nk == 0:
			w.attendNothing(h, rows[:count])
		case w.lq == 1 && count > 1:
			w.attendGathered(t, h, rows[:count])
		default:
			for i, r := range rows[:count] {
				w.ahead(t, n, h, rows, i, false)
				w.attendRow(t, int(r), h)
			}
		}
		rows = rows[count:]
	}
}

// attendRow computes row r, head h, in blocks of queries.
func (w *attentionWork) attendRow(t *attentionWorker, r, h int) {
	for i0 := 0; i0 < w.lq; i0 += w.block {
		n, first := min(w.block, w.lq-i0), r*w.lq+i0
		w.setBlock(t, r, h, i0, n, w.c.Aux[0].F32)
		t.block.Out = rowsAt(w.c.Out, first*w.d+h*w.e, w.d)
		t.kernel.Forward(&t.block)
	}
}

// attendGathered computes rows of one query each as one block.
func (w *attentionWork) attendGathered(t *attentionWorker, h int, rows []int32) {
	w.gather(t, h, rows)
	t.block.Out = gemm.Matrix{F32: t.gather.out, LD: w.e}
	t.kernel.Forward(&t.block)
	for i, r := range rows {
		w.c.Aux[0].F32[int(r)*w.heads+h] = t.gather.lse[i]
	}
	w.scatterHeads(w.c.Out, t.gather.out, h, rows)
}

// attendNothing sets the outputs of rows without keys to 0.
func (w *attentionWork) attendNothing(h int, rows []int32) {
	for _, r := range rows {
		vector.Fill(w.c.Aux[0].F32[(int(r)*w.heads+h)*w.lq:][:w.lq], 0)
		w.zero(w.c.Out, int(r)*w.lq*w.d+h*w.e, w.d, w.lq)
	}
}

// readsHalf returns the operands that may be bfloat16: queries, keys and values. Their products are
// of bfloat16 then, but for a few queries.
func (a *attention) readsHalf() []int {
	if a.self {
		return []int{0}
	}
	return []int{0, 1}
}

// gradients returns the gradient nodes of the operands.
func (a *attention) gradients(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
	grads := make(gorgonia.Nodes, a.operands)
	back := op.Apply(a.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
	grads[0] = back
	if !a.self {
		grads[1] = op.Apply(a.keysGradient(in[1].Shape()), back)
	}
	if a.bias >= 0 {
		grads[a.bias] = op.Take(back, a.biasAux(), in[a.bias].Shape())
	}
	return grads
}
