package ops

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the attention op. Its auxiliary result is the log-sum-exp of every
// query's scores, (R, H, Lq), from which the backward op makes the probabilities
// again: they are never kept.
func (a *attention) forward() *op {
	o := &op{kind: "self attention", args: a.args(), shape: a.shape, diff: make([]bool, a.operands), writesHalf: []int{output}}
	o.diff[0] = true
	if !a.self {
		o.kind = "cross attention"
		o.diff[1] = true
	}
	o.aux = func(in []tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: tensor.Shape{a.dims(in).rows, a.heads, a.lq}}}
	}
	o.scratch = func(in []tensor.Shape, threads int) int {
		return threads * a.forwardWorker(a.dims(in))
	}
	o.flops = func(in []tensor.Shape) int64 { return 2 * a.product(in) }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		s := a.callDims(c)
		size := a.forwardWorker(s)
		body := func(worker, lo, hi int) {
			scratch := c.Scratch[worker*size : (worker+1)*size]
			for t := lo; t < hi; t++ {
				a.attend(c, s, t/a.heads, t%a.heads, scratch)
			}
		}
		return func() error {
			if err := a.checkValues(c, s.seqs); err != nil {
				return err
			}
			c.Engine.For(s.rows*a.heads, 1, body)
			return nil
		}, nil
	}
	o.grad = a.gradients
	return o
}

// product returns the floating-point operations of one of the attention's matrix
// products over all rows and heads, with every key counted.
func (a *attention) product(in []tensor.Shape) int64 {
	s := a.dims(in)
	return 2 * int64(s.rows) * int64(a.lq) * int64(a.lk) * int64(s.d)
}

// forwardWorker returns the scratch of one thread: a block of scores, and one of the
// output for where that is stored as bfloat16.
func (a *attention) forwardWorker(s attentionDims) int {
	return a.worker(s, 1) + (s.block*s.e+15)/16*16
}

// attend computes the output of row r, head h.
func (a *attention) attend(c *exec.Call, s attentionDims, r, h int, scratch []float32) {
	nk := a.keys(c, r)
	at := r*a.lq*s.d + h*s.e
	lse := c.Aux[0].F32[(r*a.heads+h)*a.lq:][:a.lq]
	if nk == 0 {
		kernel.Fill(lse, 0)
		if half := c.Out.BF16; half != nil {
			clearRows(half[at:], a.lq, s.e, s.d)
		} else {
			clearRows(c.Out.F32[at:], a.lq, s.e, s.d)
		}
		return
	}
	q, k, v := a.views(c, s)
	q = q[r*a.lq*s.ldq+h*s.e:]
	first := a.sequence(c, r)*a.lk*s.ldkv + h*s.e
	k, v = k[first:], v[first:]
	alpha := a.alpha(s)
	scores, tile := scratch[:a.worker(s, 1)], scratch[a.worker(s, 1):]
	for i0 := 0; i0 < a.lq; i0 += s.block {
		nq := min(s.block, a.lq-i0)
		p := scores[:nq*nk]
		gemm(c, false, true, nq, nk, s.e, alpha, q[i0*s.ldq:], s.ldq, k, s.ldkv, 0, p, nk)
		for i := range nq {
			row := p[i*nk : (i+1)*nk]
			l := kernel.Softmax(row, row)
			lse[i0+i] = l
			if a.bits >= 0 {
				kernel.Dropout(row, row, a.mask(c, s, r, h, i0+i), 1/a.keep)
			}
		}
		if c.Out.BF16 == nil {
			gemm(c, false, false, nq, s.e, nk, 1, p, nk, v, s.ldkv, 0, c.Out.F32[at+i0*s.d:], s.d)
			continue
		}
		gemm(c, false, false, nq, s.e, nk, 1, p, nk, v, s.ldkv, 0, tile, s.e)
		for i := range nq {
			kernel.ToBF16(c.Out.BF16[at+(i0+i)*s.d:][:s.e], tile[i*s.e:][:s.e])
		}
	}
}

// alpha is the scale of the scores, 1/sqrt(D/H).
func (a *attention) alpha(s attentionDims) float32 {
	return float32(1 / math.Sqrt(float64(s.e)))
}

// clearRows zeroes a matrix of the given row stride.
func clearRows[T float32 | uint16](x []T, rows, cols, stride int) {
	for r := range rows {
		clear(x[r*stride : r*stride+cols])
	}
}

// gradients returns the gradient nodes of the operands.
func (a *attention) gradients(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
	grads := make(gorgonia.Nodes, a.operands)
	back := apply(a.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
	grads[0] = back
	if !a.self {
		grads[1] = apply(a.keysGradient(in[1].Shape()), back)
	}
	return grads
}
