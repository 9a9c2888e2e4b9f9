package geodesic

import "github.com/geoalign/geoalign/ops/internal/chain"

// directBlock is the number of columns with a direct angle that are worked on at once.
const directBlock = 128

// directFloats is the number of values of scratch that a thread needs for them, and for
// the slopes of a block of columns.
const directFloats = 4*directBlock + 2 + chain.Block

// directWork is a thread's memory for columns with a direct angle.
type directWork struct {
	n                       int
	cols, none              []int32   // none is 0 everywhere
	dots, angles, dy, slope []float32 // of the columns
	zero, one               []float32 // one value each; zero is 0
	block                   []float32 // slopes of a block of columns
}

// worker returns the memory of a thread, empty.
func (r *geodesicRun) worker(i int) *directWork {
	w, s := &r.work[i], r.c.Scratch[i*directFloats:(i+1)*directFloats]
	next := func(n int) []float32 {
		x := s[:n:n]
		s = s[n:]
		return x
	}
	w.n = 0
	w.dots, w.angles, w.dy, w.slope = next(directBlock), next(directBlock), next(directBlock), next(directBlock)
	w.zero, w.one, w.block = next(1), next(1), next(chain.Block)
	w.zero[0] = 0
	return w
}

// direct puts the columns of row i with a direct angle and their cosines into w, and
// calls flush, which empties it, whenever it is full, and at the end.
func (r *geodesicRun) direct(i int, w *directWork, flush func()) {
	add := func(j int, dot float32) {
		w.cols[w.n], w.dots[w.n] = int32(j), dot
		if w.n++; w.n == directBlock {
			flush()
		}
	}
	if r.count == 0 {
		r.eachColumn(i, w, flush)
		return
	}
	if r.SameCluster {
		for _, j := range r.members(int(r.c.In[r.nearest].I32[i])) {
			add(int(j), r.separation(i, int(j)))
		}
	}
	for j := r.firstPositive(i); j >= 0; j = r.nextPositive(j) {
		if dot, ok := r.directPositive(i, j, w); ok {
			add(j, dot)
		}
	}
	if w.n > 0 {
		flush()
	}
}

// features returns row i of F.
func (r *geodesicRun) features(i int) []float32 {
	width := r.c.In[geoF].Dim(1)
	return r.c.In[geoF].F32[i*width : (i+1)*width]
}

// members returns the columns of cluster k in ascending order.
func (r *geodesicRun) members(k int) []int32 {
	x, clusters := r.c.In[geoMembers].I32, r.c.In[geoDistances].Dim(1)
	return x[clusters+1:][x[k]:x[k+1]]
}

// firstPositive returns the first positive column of row i whose angle counts, -1 without
// one.
func (r *geodesicRun) firstPositive(i int) int {
	switch {
	case !r.DirectPositives:
		return -1
	case r.positives >= 0:
		return int(r.c.In[r.positives].I32[i])
	}
	if j := (r.pool.Pointer + i) % r.pool.Size; j < r.pool.Cols {
		return j
	}
	return -1
}

// nextPositive returns the positive column after j, -1 at the end.
func (r *geodesicRun) nextPositive(j int) int {
	if r.positives < 0 {
		return -1
	}
	return int(r.c.In[r.positives].I32[r.c.In[geoF].Dim(0)+j])
}

// directPositive returns the cosine of row i and its positive j, and whether its angle
// is taken for want of a shorter path. Columns of the row's own cluster have theirs
// already with SameCluster.
func (r *geodesicRun) directPositive(i, j int, w *directWork) (dot float32, ok bool) {
	owner, reach := r.c.In[geoOwner].I32, r.c.In[geoReach].F32
	batch, at := r.pool.Row(j)
	if batch {
		owner, reach = r.c.In[geoKeyOwner].I32, r.c.In[geoKeyReach].F32
	}
	k := owner[at]
	if r.SameCluster && k == r.c.In[r.nearest].I32[i] {
		return 0, false
	}
	dot = r.separation(i, j)
	w.one[0] = dot
	r.toAngles(w.one, w.one)
	return dot, !(r.distances(i)[k]+reach[at] < w.one[0])
}
