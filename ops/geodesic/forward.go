package geodesic

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the op of the scores.
func (x *geodesic) forward() *op.Op {
	o := &op.Op{Kind: "geodesic", Args: x.args(), Shape: x.shape, Diff: make([]bool, x.operands),
		On: x.onCUDA().Forward()}
	o.Diff[geoF], o.Diff[geoDistances] = true, !x.StraightThrough
	o.Scratch = func(_ []tensor.Shape, threads int) int { return threads * directFloats }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r, cosines := x.newRun(c), x.scoreProduct(c, geoF)
		rows, total := c.Out.Dim(0), c.Out.Dim(1)
		paths := func(_, lo, hi int) {
			// A block of columns for all rows after another, so that its part of the
			// graph stays in the cache.
			for t := lo; t < hi; t++ {
				from := t / rows * chain.Block
				r.paths(t%rows, from, min(from+chain.Block, r.pool.Cols))
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
			if r.count == 0 && x.Space.Euclid {
				cosines.ClearAfter(r.pool.Cols)
				c.Engine.For(rows, 1, direct)
				return nil
			}
			if r.count == 0 {
				cosines.Forward(&r.pool)
				return nil
			}
			c.Engine.For(rows*chain.Blocks(r.pool.Cols), 1, paths)
			cosines.ClearAfter(r.pool.Cols)
			if x.SameCluster || x.DirectPositives {
				c.Engine.For(rows, 1, direct)
			}
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, x.operands)
		if x.StraightThrough {
			switch {
			case x.Space.Euclid:
				grads[geoF] = euclidGradient(in[geoF], dy, x.Pool, x.Limit)
			case !x.Space.One():
				grads[geoF] = arith.Times(x.local().mean(), pool.Gradient(dy, x.Pool))
			default:
				grads[geoF] = pool.Gradient(dy, x.Pool)
			}
			return grads
		}
		de := op.Apply(x.backward(), append(append(gorgonia.Nodes{}, in...), dy)...)
		grads[geoF], grads[geoDistances] = op.Take(de, 0, in[geoF].Shape()), de
		return grads
	}
	return o
}

// paths writes the scores of row i in columns [from, to) by the paths through the graph.
func (r *geodesicRun) paths(i, from, to int) {
	e := r.distances(i)
	out := r.c.Out.F32[i*r.pool.Size : (i+1)*r.pool.Size]
	for _, g := range r.pool.Segments {
		lo, hi := max(from, g.Col), min(to, g.Col+g.N)
		if lo >= hi {
			continue
		}
		owner, reach := r.graph(g)
		vector.PathCos(out[lo:hi], e, owner[lo-g.Col:hi-g.Col], reach[lo-g.Col:hi-g.Col], r.Limit)
	}
}

// directScores writes the scores of row i in the columns with a direct angle.
func (r *geodesicRun) directScores(worker, i, total int) {
	w := r.worker(worker)
	out := r.c.Out.F32[i*total : (i+1)*total]
	flush := func() {
		r.toAngles(w.angles[:w.n], w.dots[:w.n])
		vector.PathCos(w.slope[:w.n], w.zero, w.none, w.angles[:w.n], r.Limit)
		for t, j := range w.cols[:w.n] {
			out[j] = w.slope[t]
		}
		w.n = 0
	}
	r.direct(i, w, flush)
}
