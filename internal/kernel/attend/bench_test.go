package attend_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// attentionCase is self-attention as the op sees it, or attention of rows of lq queries
// to each of seqs sequences of lk keys: a head's values lie side by side with those of
// the other heads.
type attentionCase struct {
	seqs, rows, lq, lk, e int // rows that attend to one sequence
	ldq, ldkv, ldo        int
	q, k, v, do           []float32
	out, dq, dk, dv       []float32
	lse                   []float32
	bits                  []int32
	words                 int
	scale                 float32
	bias, dbias           []float32 // (lq, lk), of all heads, or nil
	causal                bool
	scores, drops, part   []float32 // of the products one by one
	block                 attend.Block
	grads                 attend.Grads
}

const (
	attentionHeads = 6
	attentionTime  = 60 * time.Millisecond
)

func newAttentionCase(r *rand.Rand, seqs, rows, lq, lk, e int, drop bool) *attentionCase {
	d := attentionHeads * e
	c := &attentionCase{seqs: seqs, rows: rows, lq: lq, lk: lk, e: e, ldq: 3 * d, ldkv: 3 * d, ldo: d, words: (lk + 31) / 32, scale: 1}
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	queries, keys := seqs*rows*lq, seqs*lk
	c.q = random(queries * c.ldq)
	c.k, c.v = c.q[d:], c.q[2*d:]
	c.dq = random(queries * c.ldq)
	c.dk, c.dv = c.dq[d:], c.dq[2*d:]
	if rows > 1 || lq != lk {
		c.ldq, c.ldkv = d, 2*d
		c.k, c.dk = random(keys*c.ldkv), random(keys*c.ldkv)
		c.v, c.dv = c.k[d:], c.dk[d:]
	}
	c.out, c.do, c.lse = random(queries*d), random(queries*d), random(queries*attentionHeads)
	c.scores, c.drops, c.part = random(lq*lk), random(lq*lk), random(lq*lk)
	if drop {
		c.scale = 1 / .9
		c.bits = make([]int32, queries*attentionHeads*c.words)
		for i := range c.bits {
			c.bits[i] = int32(r.Uint32() | r.Uint32() | r.Uint32())
		}
	}
	return c
}

// sizes returns what an Attention for the case is made from.
func (c *attentionCase) sizes(backward bool) attend.Sizes {
	return attend.Sizes{Keys: c.lk, Width: c.e, Queries: attend.BlockSize(c.lq, c.lk), Backward: backward}
}

// attention returns an Attention with memory for the case.
func (c *attentionCase) attention(e *kernel.Engine, backward bool) *attend.Head {
	a := e.NewAttention(c.sizes(backward))
	a.Use(make([]float32, c.sizes(backward).Scratch()))
	return a
}

// head is one head of one sequence of a case.
type head struct {
	q, k, v, do     []float32
	out, dq, dk, dv []float32
	lse             []float32
	bits            []int32
}

// head cuts out head h of sequence n.
func (c *attentionCase) head(n, h int) head {
	q, k := n*c.rows*c.lq, n*c.lk
	at := h * c.e
	x := head{q: c.q[q*c.ldq+at:], k: c.k[k*c.ldkv+at:], v: c.v[k*c.ldkv+at:], do: c.do[q*c.ldo+at:],
		out: c.out[q*c.ldo+at:], dq: c.dq[q*c.ldq+at:], dk: c.dk[k*c.ldkv+at:], dv: c.dv[k*c.ldkv+at:]}
	q = (n*attentionHeads + h) * c.rows * c.lq
	x.lse = c.lse[q:]
	if c.bits != nil {
		x.bits = c.bits[q*c.words:]
	}
	return x
}

// floats returns a matrix of float32.
func floats(x []float32, ld int) gemm.Matrix { return gemm.Matrix{F32: x, LD: ld} }

// run computes the case in blocks.
func (c *attentionCase) run(a *attend.Head, backward bool) {
	for t := range c.seqs * attentionHeads {
		x := c.head(t/attentionHeads, t%attentionHeads)
		a.SetKeys(floats(x.k, c.ldkv), floats(x.v, c.ldkv), c.lk)
		if next := t + 1; next < c.seqs*attentionHeads {
			y := c.head(next/attentionHeads, next%attentionHeads)
			a.Ahead(floats(y.q, c.ldq), c.lq)
			a.Ahead(floats(y.k, c.ldkv), c.lk)
			a.Ahead(floats(y.v, c.ldkv), c.lk)
			if backward {
				a.Ahead(floats(y.do, c.ldo), c.lq)
			}
		}
		add := false
		for i := 0; i < c.rows*c.lq; {
			n := min(c.sizes(backward).Queries, c.lq-i%c.lq)
			b, g := &c.block, &c.grads
			*b = attend.Block{N: n, Q: floats(x.q[i*c.ldq:], c.ldq), LSE: x.lse[i:], Words: c.words, Scale: c.scale, Out: floats(x.out[i*c.ldo:], c.ldo)}
			if c.bits != nil {
				b.Bits = x.bits[i*c.words:]
			}
			b.Causal, b.First = c.causal, i%c.lq
			if c.bias != nil {
				b.Bias, b.LDBias = c.bias[i%c.lq*c.lk:], c.lk
			}
			if !backward {
				a.Forward(b)
			} else {
				*g = attend.Grads{DOut: floats(x.do[i*c.ldo:], c.ldo), DQ: floats(x.dq[i*c.ldq:], c.ldq), DK: x.dk, DV: x.dv, LDDKV: c.ldkv, Add: add}
				if c.bias != nil {
					g.DBias = c.dbias[i%c.lq*c.lk:]
				}
				a.Backward(b, g)
				add = true
			}
			i += n
		}
	}
}

// oneByOne computes the case by products and passes over all of a row's scores, as
// attention without kernels of its own does.
func (c *attentionCase) oneByOne(e *kernel.Engine, backward bool) {
	for t := range c.seqs * attentionHeads {
		x := c.head(t/attentionHeads, t%attentionHeads)
		for r := range c.rows {
			c.headByOne(e, &x, r, backward)
		}
	}
}

// headByOne computes row r of a head.
func (c *attentionCase) headByOne(e *kernel.Engine, x *head, r int, backward bool) {
	mul := func(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, out []float32, ldc int) {
		e.MultiplySerial(&gemm.Product{TransA: transA, TransB: transB, M: m, N: n, K: k, Alpha: alpha, Beta: beta, BF16: e.BF16(),
			A: gemm.Matrix{F32: a, LD: lda}, B: gemm.Matrix{F32: b, LD: ldb}, C: out, LDC: ldc})
	}
	alpha := float32(.125)
	i := r * c.lq
	drop := func(dst, src []float32) {
		if c.bits != nil {
			for j := range c.lq {
				vector.Dropout(dst[j*c.lk:][:c.lk], src[j*c.lk:], x.bits[(i+j)*c.words:], c.scale)
			}
		}
	}
	q, do, p, ds := x.q[i*c.ldq:], x.do[i*c.ldo:], c.scores, c.part
	if !backward {
		mul(false, true, c.lq, c.lk, c.e, alpha, q, c.ldq, x.k, c.ldkv, 0, p, c.lk)
		for j := range c.lq {
			x.lse[i+j] = vector.Softmax(p[j*c.lk:][:c.lk], p[j*c.lk:])
		}
		drop(p, p)
		mul(false, false, c.lq, c.e, c.lk, 1, p, c.lk, x.v, c.ldkv, 0, x.out[i*c.ldo:], c.ldo)
		return
	}
	for j := range c.lq {
		vector.Fill(p[j*c.lk:][:c.lk], -x.lse[i+j])
	}
	mul(false, true, c.lq, c.lk, c.e, alpha, q, c.ldq, x.k, c.ldkv, 1, p, c.lk)
	vector.Exp(p, p)
	dropped := p
	if c.bits != nil {
		dropped = c.drops
		drop(dropped, p)
	}
	beta := float32(min(r, 1))
	mul(true, false, c.lk, c.e, c.lq, 1, dropped, c.lk, do, c.ldo, beta, x.dv, c.ldkv)
	mul(false, true, c.lq, c.lk, c.e, 1, do, c.ldo, x.v, c.ldkv, 0, ds, c.lk)
	drop(ds, ds)
	for j := range c.lq {
		row := ds[j*c.lk:][:c.lk]
		vector.SoftmaxGradRow(row, p[j*c.lk:], row)
	}
	mul(false, false, c.lq, c.e, c.lk, alpha, ds, c.lk, x.k, c.ldkv, 0, x.dq[i*c.ldq:], c.ldq)
	mul(true, false, c.lk, c.e, c.lq, alpha, ds, c.lk, q, c.ldq, beta, x.dk, c.ldkv)
}

// BenchmarkAttention gives the rate of one thread, and how many times as fast as
// products one by one it is. It measures by itself, both in turns: the time of the
// benchmark means nothing.
func BenchmarkAttention(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []struct {
		seqs, rows, lq, lk, e int
		drop                  bool
	}{
		{64, 1, 30, 30, 64, true}, {64, 1, 30, 30, 32, false},
		{1, 1, 65, 65, 64, false}, {32, 1, 65, 65, 64, false}, {32, 1, 65, 65, 64, true}, {32, 1, 65, 65, 32, false},
		{8, 1, 197, 197, 64, true}, {8, 1, 197, 197, 32, false},
		{8, 1, 257, 257, 64, true}, {8, 1, 257, 257, 32, false},
		{32, 4, 30, 65, 64, true}, {8, 4, 30, 257, 64, true}, {32, 1, 1, 65, 64, true}, {64, 1, 1, 30, 64, true},
	} {
		for _, precision := range []string{"fp32", "bf16"} {
			e, err := kernel.New(kernel.Options{Threads: 1, Precision: precision})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(e.Close)
			c := newAttentionCase(r, s.seqs, s.rows, s.lq, s.lk, s.e, s.drop)
			for _, backward := range []bool{false, true} {
				name, products := "forward", 2
				if backward {
					name, products = "backward", 5
				}
				a := c.attention(e, backward)
				b.Run(fmt.Sprintf("%dx%dx%dx%dx%d/drop=%v/%s/%s", s.seqs, s.rows, s.lq, s.lk, s.e, s.drop, precision, name), func(b *testing.B) {
					flops := 2 * float64(products*s.seqs*attentionHeads*s.rows*s.lq*s.lk*s.e)
					got, want := bestOf(func() { c.run(a, backward) }, func() { c.oneByOne(e, backward) })
					b.ReportMetric(flops/got/1e9, "GFLOP/s")
					b.ReportMetric(flops/want/1e9, "GFLOP/s-by-one")
					b.ReportMetric(want/got, "times")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// bestOf returns the least seconds of runs of f and g in turns.
func bestOf(f, g func()) (seconds, other float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least, start := [2]time.Duration{time.Hour, time.Hour}, kerneltest.Clock()
	for i := 0; i < 5 || kerneltest.Clock()-start < attentionTime; i++ {
		for j, run := range []func(){f, g} {
			run()
			t := kerneltest.Clock()
			run()
			least[j] = min(least[j], kerneltest.Clock()-t)
		}
	}
	return least[0].Seconds(), least[1].Seconds()
}
