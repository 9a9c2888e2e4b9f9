package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the op of the scores.
func (x *geodesic) forward() *op {
	o := &op{kind: "geodesic", args: x.args(), shape: x.shape, diff: make([]bool, x.operands)}
	o.diff[geoF], o.diff[geoDistances] = true, !x.StraightThrough
	o.scratch = func(_ []tensor.Shape, threads int) int { return threads * directFloats }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		r, cosines := x.newRun(c), x.scoreProduct(c, geoF)
		rows, total := c.Out.Dim(0), c.Out.Dim(1)
		paths := func(_, lo, hi int) {
			// A block of columns for all rows after another, so that its part of the
			// graph stays in the cache.
			for t := lo; t < hi; t++ {
				from := t / rows * ceBlock
				r.paths(t%rows, from, min(from+ceBlock, r.pool.cols))
			}
		}
		direct := func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				r.directScores(worker, i, total)
			}
		}
		return func() error {
			if err := r.begin(); err != nil {
				return err
			}
			if r.count == 0 && x.Local.Euclid {
				cosines.clearAfter(r.pool.cols)
				c.Engine.For(rows, 1, direct)
				return nil
			}
			if r.count == 0 {
				cosines.forward(&r.pool)
				return nil
			}
			c.Engine.For(rows*ceBlocks(r.pool.cols), 1, paths)
			cosines.clearAfter(r.pool.cols)
			if x.SameCluster || x.DirectPositives {
				c.Engine.For(rows, 1, direct)
			}
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, x.operands)
		if x.StraightThrough {
			switch {
			case x.Local.Euclid:
				grads[geoF] = euclidGradient(in[geoF], dy, x.Pool, x.Limit)
			case !x.Local.one():
				grads[geoF] = times(x.Local.mean(), poolGradient(dy, x.Pool))
			default:
				grads[geoF] = poolGradient(dy, x.Pool)
			}
			return grads
		}
		de := apply(x.backward(), append(append(gorgonia.Nodes{}, in...), dy)...)
		grads[geoF], grads[geoDistances] = take(de, 0, in[geoF].Shape()), de
		return grads
	}
	return o
}

// paths writes the scores of row i in columns [from, to) by the paths through the graph.
func (r *geodesicRun) paths(i, from, to int) {
	e := r.distances(i)
	out := r.c.Out.F32[i*r.pool.size : (i+1)*r.pool.size]
	for _, g := range r.pool.segments {
		lo, hi := max(from, g.col), min(to, g.col+g.n)
		if lo >= hi {
			continue
		}
		owner, reach := r.graph(g)
		kernel.PathCos(out[lo:hi], e, owner[lo-g.col:hi-g.col], reach[lo-g.col:hi-g.col], r.Limit)
	}
}

// directScores writes the scores of row i in the columns with a direct angle.
func (r *geodesicRun) directScores(worker, i, total int) {
	w := r.worker(worker)
	out := r.c.Out.F32[i*total : (i+1)*total]
	flush := func() {
		r.toAngles(w.angles[:w.n], w.dots[:w.n])
		kernel.PathCos(w.slope[:w.n], w.zero, w.none, w.angles[:w.n], r.Limit)
		for t, j := range w.cols[:w.n] {
			out[j] = w.slope[t]
		}
		w.n = 0
	}
	r.direct(i, w, flush)
}
