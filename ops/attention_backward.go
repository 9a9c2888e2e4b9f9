package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/tensor"
)

// backward is the gradient op of the attention: operands are the forward's, its
// output and the output's gradient dO. The result is dqkv, or dq with dkv as
// first auxiliary result. With P the probabilities,
//
//	dV = P^T dO    dP = dO V^T    dS = P * (dP - rowsum(dP * P))
//	dQ = dS K / sqrt(E)           dK = dS^T Q / sqrt(E)
//
// where dropout is applied to the P of dV and to dP. P is made again from the
// scores and their log-sum-exp, which come with the output; rowsum(dP * P) is
// summed over the fresh dP rather than as rowsum(dO * O) (Dao et al. 2022,
// section B.2), which would read the output from memory. Work is split over (key sequence, head), so that
// no two threads add to the same dK and dV, and rows that share a key sequence
// are added in row order.
func (a *attention) backward() *op {
	o := &op{
		kind: "self attention dx", args: a.args(), diff: make([]bool, a.operands+2),
		readsHalf: []int{a.operands}, // the statistics next to the output are what is read
	}
	if !a.self {
		o.kind = "cross attention dx"
		o.aux = a.backwardAux
	}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		want, err := a.shape(in)
		if err != nil {
			return nil, err
		}
		dy := in[a.operands+1]
		return in[0].Clone(), need(dy.Eq(want), "dy must have shape %v (got %v)", want, dy)
	}
	o.scratch = func(in []tensor.Shape, threads int) int {
		return threads * a.worker(a.dims(in), 2)
	}
	o.flops = func(in []tensor.Shape) int64 { return 5 * a.product(in) }
	o.prepare = a.prepareBackward
	return o
}

// backwardAux asks for dkv and, with an index, for the rows sorted by key
// sequence and where each sequence's rows begin.
func (a *attention) backwardAux(in []tensor.Shape) []exec.AuxSpec {
	aux := []exec.AuxSpec{{Shape: in[1]}}
	if a.index >= 0 {
		s := a.dims(in)
		aux = append(aux,
			exec.AuxSpec{Shape: tensor.Shape{s.rows}, Int: true},
			exec.AuxSpec{Shape: tensor.Shape{s.seqs + 1}, Int: true})
	}
	return aux
}

// keysGradient exposes dkv as a node.
func (a *attention) keysGradient(shape tensor.Shape) *op {
	return &op{
		kind: "cross attention dkv", args: fmt.Sprint(shape), diff: []bool{false}, alias: &[2]int{0, 0},
		shape: func([]tensor.Shape) (tensor.Shape, error) { return shape, nil },
	}
}

func (a *attention) prepareBackward(c *exec.Call) (exec.Step, error) {
	s := a.callDims(c)
	size := a.worker(s, 2)
	body := func(worker, lo, hi int) {
		scratch := c.Scratch[worker*size : (worker+1)*size]
		for t := lo; t < hi; t++ {
			a.sequenceGradient(c, s, t/a.heads, t%a.heads, scratch)
		}
	}
	return func() error {
		if a.index >= 0 {
			sortByKey(c.Aux[1].I32, c.Aux[2].I32, c.In[a.index].I32)
		}
		c.Engine.For(s.seqs*a.heads, 1, body)
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

// keyGrads is where the gradients of the keys and values of one sequence and head
// go.
type keyGrads struct {
	k, v []float32
	beta float32 // 0 until the first row has been written
}

// sequenceGradient handles all rows that attend to sequence n, for head h.
func (a *attention) sequenceGradient(c *exec.Call, s attentionDims, n, h int, scratch []float32) {
	var g keyGrads
	at := n*a.lk*s.ldkv + h*s.e
	if a.self {
		g.k, g.v = c.Out.F32[at+s.d:], c.Out.F32[at+2*s.d:]
	} else {
		g.k, g.v = c.Aux[0].F32[at:], c.Aux[0].F32[at+s.d:]
	}
	if a.index < 0 {
		a.rowGradient(c, s, n, n, h, &g, scratch)
	} else {
		starts := c.Aux[2].I32
		for _, r := range c.Aux[1].I32[starts[n]:starts[n+1]] {
			a.rowGradient(c, s, int(r), n, h, &g, scratch)
		}
	}
	if g.beta == 0 {
		clearRows(g.k, a.lk, s.e, s.ldkv)
		clearRows(g.v, a.lk, s.e, s.ldkv)
	}
}

// rowGradient computes dQ of row r, head h, and adds to dK and dV.
func (a *attention) rowGradient(c *exec.Call, s attentionDims, r, n, h int, g *keyGrads, scratch []float32) {
	nk := a.keys(c, r)
	at := r*a.lq*s.ldq + h*s.e
	dq := c.Out.F32[at:]
	if nk == 0 {
		clearRows(dq, a.lq, s.e, s.ldq)
		return
	}
	q, k, v := a.views(c, s)
	first := n*a.lk*s.ldkv + h*s.e
	q, k, v = q[at:], k[first:], v[first:]
	dy := c.In[a.operands+1].F32[r*a.lq*s.d+h*s.e:]
	lse := c.InAux[a.operands][0].F32[(r*a.heads+h)*a.lq:]
	alpha := a.alpha(s)
	half := len(scratch) / 2
	for i0 := 0; i0 < a.lq; i0 += s.block {
		nq := min(s.block, a.lq-i0)
		p, ds := scratch[:nq*nk], scratch[half:half+nq*nk]
		do, qi := dy[i0*s.d:], q[i0*s.ldq:]
		// P = exp(S - lse): the shift is what the product is added to.
		for i := range nq {
			kernel.Fill(p[i*nk:(i+1)*nk], -lse[i0+i])
		}
		gemm(c, false, true, nq, nk, s.e, alpha, qi, s.ldq, k, s.ldkv, 1, p, nk)
		kernel.Exp(p, p)
		dropped := p
		if a.bits >= 0 {
			dropped = ds
			for i := range nq {
				kernel.Dropout(ds[i*nk:(i+1)*nk], p[i*nk:(i+1)*nk], a.mask(c, s, r, h, i0+i), 1/a.keep)
			}
		}
		gemm(c, true, false, nk, s.e, nq, 1, dropped, nk, do, s.d, g.beta, g.v, s.ldkv)
		a.scoreGradient(c, s, r, h, i0, nq, nk, p, ds, do, v)
		gemm(c, false, false, nq, s.e, nk, alpha, ds, nk, k, s.ldkv, 0, dq[i0*s.ldq:], s.ldq)
		gemm(c, true, false, nk, s.e, nq, alpha, ds, nk, qi, s.ldq, g.beta, g.k, s.ldkv)
		if g.beta == 0 { // keys that this row does not see
			a.clearUnseen(g, s, nk)
			g.beta = 1
		}
	}
}

// clearUnseen zeroes the gradients of the keys from nk on.
func (a *attention) clearUnseen(g *keyGrads, s attentionDims, nk int) {
	if nk < a.lk {
		clearRows(g.k[nk*s.ldkv:], a.lk-nk, s.e, s.ldkv)
		clearRows(g.v[nk*s.ldkv:], a.lk-nk, s.e, s.ldkv)
	}
}

// scoreGradient sets ds to dS = P * (dP - rowsum(dP * P)) for the queries from i0 on.
func (a *attention) scoreGradient(c *exec.Call, s attentionDims, r, h, i0, nq, nk int, p, ds, do, v []float32) {
	gemm(c, false, true, nq, nk, s.e, 1, do, s.d, v, s.ldkv, 0, ds, nk)
	for i := range nq {
		row := ds[i*nk : (i+1)*nk]
		if a.bits >= 0 {
			kernel.Dropout(row, row, a.mask(c, s, r, h, i0+i), 1/a.keep)
		}
		kernel.SoftmaxGradRow(row, p[i*nk:(i+1)*nk], row)
	}
}
