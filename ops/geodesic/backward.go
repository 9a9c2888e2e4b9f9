package geodesic

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// backward is the gradient op of the scores: operands are the forward's and the gradient
// dy (B, N). The result is dE (B, K), with dF (B, C) beside it. Rows are independent: a
// row of dE stays in the first-level cache while the columns are added to it.
func (x *geodesic) backward() *op.Op {
	dy := x.operands
	o := &op.Op{Kind: "geodesic dx", Args: x.args(), Diff: make([]bool, x.operands+1), On: x.onCUDA().Backward()}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		out, err := x.shape(in[:dy])
		if err != nil {
			return nil, err
		}
		return in[geoDistances].Clone(), op.Need(in[dy].Eq(out), "dy must have shape %v (got %v)", out, in[dy])
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[geoF].Clone()}} }
	o.Scratch = func(_ []tensor.Shape, threads int) int { return threads * directFloats }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r, cosines := x.newRun(c), x.scoreProduct(c, dy)
		body := func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				r.pathGradient(worker, i)
				r.directGradient(worker, i)
			}
		}
		distances := func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				r.directGradient(worker, i)
			}
		}
		return func() error {
			if err := r.begin(); err != nil {
				return err
			}
			if r.count == 0 && x.Space.Euclid {
				c.Engine.For(c.Out.Dim(0), 1, distances)
				clear(c.Out.F32)
				return nil
			}
			if r.count == 0 {
				cosines.Backward(&r.pool, c.Aux[0].F32)
				clear(c.Out.F32)
				return nil
			}
			c.Engine.For(c.Out.Dim(0), 1, body)
			return nil
		}, nil
	}
	return o
}

// scoreGradient returns row i of dy.
func (r *geodesicRun) scoreGradient(i int) []float32 {
	return r.c.In[r.operands].F32[i*r.pool.Size : (i+1)*r.pool.Size]
}

// pathGradient computes row i of dE.
func (r *geodesicRun) pathGradient(worker, i int) {
	w, e, dy := r.worker(worker), r.distances(i), r.scoreGradient(i)
	de := r.c.Out.F32[i*len(e) : (i+1)*len(e)]
	clear(de)
	positive := r.firstPositive(i) // positives come in ascending order, as segments do
	for _, g := range r.pool.Segments {
		owner, reach := r.graph(g)
		for lo := 0; lo < g.N; lo += chain.Block {
			hi := min(lo+chain.Block, g.N)
			slope := w.block[:hi-lo]
			vector.PathCosSlope(slope, e, owner[lo:hi], reach[lo:hi], dy[g.Col+lo:g.Col+hi], r.Limit)
			for ; positive >= 0 && positive < g.Col+hi; positive = r.nextPositive(positive) {
				if _, ok := r.directPositive(i, positive, w); ok {
					slope[positive-g.Col-lo] = 0
				}
			}
			for j, k := range owner[lo:hi] {
				de[k] += slope[j]
			}
		}
	}
	if r.SameCluster { // its columns all have a direct angle
		de[r.c.In[r.nearest].I32[i]] = 0
	}
}

// directGradient computes row i of dF.
func (r *geodesicRun) directGradient(worker, i int) {
	w, dy := r.worker(worker), r.scoreGradient(i)
	width := r.c.In[geoF].Dim(1)
	df := r.c.Aux[0].F32[i*width : (i+1)*width]
	clear(df)
	flush := func() {
		r.toAngles(w.angles[:w.n], w.dots[:w.n])
		for t, j := range w.cols[:w.n] {
			w.dy[t] = dy[j]
		}
		slope := w.slope[:w.n]
		vector.PathCosSlope(slope, w.zero, w.none, w.angles[:w.n], w.dy[:w.n], r.Limit)
		if !r.Space.One() {
			for t, j := range w.cols[:w.n] {
				r.local().addGradient(df, slope[t], r.features(i), r.pool.Feature(r.c, r.geodesic.pool, int(j)),
					w.angles[t])
			}
			w.n = 0
			return
		}
		vector.AcosGrad(slope, w.dots[:w.n], slope, vector.AcosLimit)
		for t, j := range w.cols[:w.n] {
			if slope[t] != 0 {
				vector.Axpy(df, slope[t], r.pool.Feature(r.c, r.geodesic.pool, int(j)))
			}
		}
		w.n = 0
	}
	r.direct(i, w, flush)
}
