package geometric

import (
	"fmt"
	"sync/atomic"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/geometric/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// gather returns the op that reads rows (R) int32 of a pool: (R, D). A row -1 is of zeros.
func gather(pool batch.Pool) *op.Op {
	return &op.Op{
		Kind: "pool rows", Args: fmt.Sprintf("%dx%d", pool.Rows(), pool.Width()), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{in[0][0], pool.Width()}, nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			width := pool.Width()
			var failed atomic.Pointer[error] // the first error of a thread
			body := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					dst := c.Out.F32[i*width : (i+1)*width]
					n := c.In[0].I32[i]
					if n < 0 {
						clear(dst)
						continue
					}
					if err := pool.Row(int(n), dst); err != nil {
						first := err
						failed.CompareAndSwap(nil, &first)
						return
					}
				}
			}
			return func() error {
				failed.Store(nil)
				c.Engine.For(c.In[0].Len(), op.RowGrain(width), body)
				if err := failed.Load(); err != nil {
					return *err
				}
				return nil
			}, nil
		},
		On: oncuda.Gather(pool),
	}
}

// Operands of compare.
const (
	cmRows = iota
	cmPoints
	cmFeatures
)

// compare returns the op of the loss of some anchors,
//
//	1/B sum_x || W(N(x)) - W(phi(N(x))) ||_F^2
//
// of rows (A*K) int32 of a pool, their points (A*K, D) and what the head makes of them
// (A*K, C). An anchor with a row -1 counts 0. B is the number of all anchors. The gradient
// for the features is made on the way.
func compare(o Options, k, b int) *op.Op {
	return &op.Op{
		Kind: "geometric compare", Args: fmt.Sprintf("k=%d b=%d kernel=%s eps=%g scale=%s", k, b, o.Kernel, o.Epsilon,
			o.Scale), Diff: []bool{false, false, true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			rows, x, z := in[cmRows], in[cmPoints], in[cmFeatures]
			return tensor.ScalarShape(), op.All(
				op.Need(len(x) == 2 && len(z) == 2 && x[0] == rows[0] && z[0] == rows[0],
					"want points (R, D) and features (R, C) of rows (R)"),
				op.Need(rows[0]%k == 0, "%d rows are no neighbourhoods of %d", rows[0], k),
			)
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[cmFeatures].Clone()}} },
		Scratch: func(in []tensor.Shape, threads int) int {
			d, c := in[cmPoints][1], in[cmFeatures][1]
			return threads*comparing(k, d, c) + in[cmRows][0]/k
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			r := &compareRun{c: c, Options: o, k: k, scale: 1 / float32(b),
				work: make([]comparison, c.Engine.Threads())}
			r.part = r.compare
			return r.step, nil
		},
		On: oncuda.Compare(o.onCUDA(), k, b, o.groupsOf(0)),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{nil, nil, arith.MulScalar(op.Take(out, 0, in[cmFeatures].Shape()), dy)}
		},
	}
}

// comparing returns the float32 values that a thread of compare works with.
func comparing(k, d, c int) int { return working(k, max(d, c)) + k*k + k*c + k }

// comparison is what a thread works with.
type comparison struct {
	neighbourhood
	target []float32 // (K, K) kernel matrix of the points
	z      []float32 // (K, C) features as they are measured
	norms  []float32 // (K)
}

type compareRun struct {
	c *exec.Call
	Options
	k      int
	scale  float32
	losses []float32 // of the anchors
	work   []comparison
	part   func(worker, lo, hi int)
}

func (r *compareRun) step() error {
	d, channels := r.c.In[cmPoints].Dim(1), r.c.In[cmFeatures].Dim(1)
	rest := r.c.Scratch
	cut := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	for i := range r.work {
		w, width := &r.work[i], max(d, channels)
		w.use(r.Options, r.k, width, cut(working(r.k, width)))
		w.target, w.z, w.norms = cut(r.k*r.k), cut(r.k*channels), cut(r.k)
	}
	anchors := r.c.In[cmRows].Len() / r.k
	r.losses = cut(anchors)
	r.c.Engine.For(anchors, 1, r.part)
	var sum float64
	for _, v := range r.losses {
		sum += float64(v)
	}
	r.c.Out.F32[0] = float32(sum * float64(r.scale))
	return nil
}

// compare computes the losses of anchors lo to hi and their gradients for the features.
func (r *compareRun) compare(worker, lo, hi int) {
	w := &r.work[worker]
	d, channels := r.c.In[cmPoints].Dim(1), r.c.In[cmFeatures].Dim(1)
	groups := r.groupsOf(0)
	for a := lo; a < hi; a++ {
		from, to := a*r.k, (a+1)*r.k
		dz := r.c.Aux[0].F32[from*channels : to*channels]
		clear(dz)
		r.losses[a] = 0
		if !complete(r.c.In[cmRows].I32[from:to]) {
			continue
		}
		w.measureRaw(r.c.In[cmPoints].F32[from*d:to*d], d)
		w.weights(w.target)
		copy(w.z, r.c.In[cmFeatures].F32[from*channels:to*channels])
		w.normalise(w.z, w.norms, groups)
		w.measure(w.z, channels)
		w.weights(w.w)
		r.losses[a] = w.compare(w.target, r.scale)
		w.spread(dz, w.z)
		w.normaliseGrad(dz, w.z, w.norms, groups)
	}
}

// complete says whether no row is missing.
func complete(rows []int32) bool {
	for _, n := range rows {
		if n < 0 {
			return false
		}
	}
	return true
}
