package geometric

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
)

// Units of the search. They are fixed, so that no bit depends on how many threads share
// them, and bound its memory.
const (
	neighbourAnchors = 256  // anchors of a chunk
	neighbourColumns = 8192 // rows of the queue whose scores are held at once
	neighbourBlock   = 32   // rows of the queue, and anchors, of one product
	neighbourInner   = 256  // channels of one product
)

// neighbourRun is what a step knows of its run.
type neighbourRun struct {
	*neighbours
	c     *exec.Call
	width int // D'

	inverse []float32 // (Q) 1 over the norms of the queue's rows
	scores  []float32 // anchors of the chunk by columns
	values  []float32 // (anchors of the chunk, near) of the nearest
	indices []int32   // and their rows

	filled, first, n int // rows that exist; anchors of the chunk
	column, columns  int // part of the queue whose scores are held

	clusters *neighbourClusters
	work     []neighbourWork

	scorePart, mergePart, normPart, comparePart, drawPart func(worker, lo, hi int)
}

// neighbourWork belongs to one thread.
type neighbourWork struct {
	product gemm.Product
	tile    [neighbourBlock * neighbourBlock]float32 // rows of the queue by anchors
	keys    []float32                                // (count) of the ranks that are drawn
	ranks   []int32
}

func newNeighbourRun(n *neighbours, c *exec.Call) *neighbourRun {
	b := c.In[nbX].Dim(0)
	r := &neighbourRun{neighbours: n, c: c, width: c.In[nbX].Dim(1),
		indices: make([]int32, min(b, neighbourAnchors)*n.near)}
	r.work = make([]neighbourWork, c.Engine.Threads())
	for i := range r.work {
		r.work[i].keys, r.work[i].ranks = make([]float32, n.count), make([]int32, n.count)
	}
	if n.owner >= 0 {
		r.clusters = newNeighbourClusters(n, c)
	}
	r.scorePart, r.mergePart, r.normPart, r.comparePart, r.drawPart = r.score, r.merge, r.norm, r.compare, r.draw
	return r
}

func (r *neighbourRun) step() error {
	b, q := r.c.In[nbX].Dim(0), r.c.In[nbQueue].Dim(0)
	if r.filled = int(r.c.In[nbFilled].I32[0]); r.filled < 0 || r.filled > q {
		return fmt.Errorf("ops: neighbours: filled is %d: want [0, %d]", r.filled, q)
	}
	byCluster := false
	if r.clusters != nil {
		var err error
		if byCluster, err = r.clusters.begin(r.filled); err != nil {
			return err
		}
	}
	if r.filled < r.near {
		for i := range r.c.Out.I32 {
			r.c.Out.I32[i] = -1
		}
		return nil
	}
	anchors := min(b, neighbourAnchors)
	r.inverse, r.values = r.c.Scratch[:q], r.c.Scratch[q:q+anchors*r.near]
	r.scores = r.c.Scratch[q+anchors*r.near:]
	if byCluster {
		r.c.Engine.For(r.filled, op.RowGrain(r.width), r.normPart)
	}
	for r.first = 0; r.first < b; r.first += anchors {
		r.n = min(anchors, b-r.first)
		if byCluster {
			r.c.Engine.For(r.n, 1, r.comparePart)
			continue
		}
		for r.column = 0; r.column < r.filled; r.column += neighbourColumns {
			r.columns = min(neighbourColumns, r.filled-r.column)
			r.c.Engine.For(blocks(r.columns, neighbourBlock), 1, r.scorePart)
			r.c.Engine.For(r.n, 1, r.mergePart)
		}
		r.c.Engine.For(r.n, 1, r.drawPart)
	}
	return nil
}

// queueRow returns row i of the queue.
func (r *neighbourRun) queueRow(i int) []float32 {
	return r.c.In[nbQueue].F32[i*r.width : (i+1)*r.width]
}

// norm computes the inverse norms of rows lo to hi of the queue. A row of zeros has 0.
func (r *neighbourRun) norm(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		r.inverse[i] = float32(1 / max(math.Sqrt(vector.SumSq(r.queueRow(i))), normFloor))
	}
}

// score computes the products of the chunk's anchors with blocks lo to hi of the columns,
// divided by the norms of the columns. An anchor's own norm does not change its order.
//
// Products are small, since libraries are slow with few long rows: blocks of 32 by 32 and
// 256 channels take a third of the time of one product with 6144.
func (r *neighbourRun) score(worker, lo, hi int) {
	w := &r.work[worker]
	for block := lo; block < hi; block++ {
		at := block * neighbourBlock
		n := min(neighbourBlock, r.columns-at)
		if r.first == 0 {
			r.norm(worker, r.column+at, r.column+at+n) // while they come into the cache
		}
		for a := 0; a < r.n; a += neighbourBlock {
			anchors := min(neighbourBlock, r.n-a)
			r.multiply(w, r.column+at, n, r.first+a, anchors)
			for i := range anchors {
				row := r.scores[(a+i)*r.columns+at:][:n]
				for j, f := range r.inverse[r.column+at:][:n] {
					row[j] = w.tile[j*anchors+i] * f
				}
			}
		}
	}
}

// multiply sets the tile (n, anchors) of w to the products of n rows of the queue from row
// on with anchors of the batch from anchor on.
func (r *neighbourRun) multiply(w *neighbourWork, row, n, anchor, anchors int) {
	for k := 0; k < r.width; k += neighbourInner {
		w.product = gemm.Product{
			TransB: true, Alpha: 1, Beta: float32(min(k, 1)), M: n, N: anchors, K: min(neighbourInner, r.width-k),
			LDC: anchors,
			A:   gemm.Matrix{F32: r.c.In[nbQueue].F32[row*r.width+k:], LD: r.width},
			B:   gemm.Matrix{F32: r.c.In[nbX].F32[anchor*r.width+k:], LD: r.width}, C: w.tile[:],
		}
		r.c.Engine.MultiplySerial(&w.product)
	}
}

// top returns the nearest rows of anchor a of the chunk, of which n are known.
func (r *neighbourRun) top(a, n int) nearest {
	return nearest{value: r.values[a*r.near : (a+1)*r.near], index: r.indices[a*r.near : (a+1)*r.near], n: n}
}

// merge shows the scores to the nearest rows of anchors lo to hi of the chunk.
func (r *neighbourRun) merge(_, lo, hi int) {
	for a := lo; a < hi; a++ {
		h := r.top(a, min(r.column, r.near))
		for j, v := range r.scores[a*r.columns : (a+1)*r.columns] {
			if h.n == r.near && v <= h.value[0] { // of equal ones the first is kept
				continue
			}
			h.push(v, int32(r.column+j))
		}
	}
}

// compare finds the nearest rows of anchors lo to hi of the chunk among their candidates
// and draws.
func (r *neighbourRun) compare(worker, lo, hi int) {
	for a := lo; a < hi; a++ {
		x := r.c.In[nbX].F32[(r.first+a)*r.width : (r.first+a+1)*r.width]
		h := r.top(a, 0)
		left := r.candidates
		for _, k := range r.clusters.order(worker, r.first+a) {
			members := r.clusters.members(k)
			members = members[:min(len(members), left)]
			left -= len(members)
			for _, i := range members {
				h.push(vector.Dot(x, r.queueRow(int(i)))*r.inverse[i], i)
			}
			if left == 0 {
				break
			}
		}
	}
	r.draw(worker, lo, hi)
}

// draw chooses among the nearest rows of anchors lo to hi of the chunk.
func (r *neighbourRun) draw(worker, lo, hi int) {
	w := &r.work[worker]
	for a := lo; a < hi; a++ {
		h := r.top(a, r.near)
		h.sort()
		out := r.c.Out.I32[(r.first+a)*r.count : (r.first+a+1)*r.count]
		if r.law == Closest {
			copy(out, h.index)
			continue
		}
		drawn := nearest{value: w.keys, index: w.ranks}
		for rank, u := range r.c.In[r.noise].F32[(r.first+a)*r.near : (r.first+a+1)*r.near] {
			drawn.push(float32(SampleKey(r.law, rank, u)), int32(rank))
		}
		slices.Sort(w.ranks)
		for i, rank := range w.ranks {
			out[i] = h.index[rank]
		}
	}
}
