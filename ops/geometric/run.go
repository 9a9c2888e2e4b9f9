package geometric

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

// Units of work. They are fixed, so that no bit depends on how many threads share them.
const (
	geometricRows    = 128 // rows of one product with the weight
	geometricOut     = 64  // rows and
	geometricColumns = 96  // columns of one tile of the weight's gradient
)

// geometricSizes are the sizes of a run: B anchors of width D', in chunks.
type geometricSizes struct {
	b, q, k, width   int // B, Q, K, D'
	tokens, d, out   int // D' = tokens*d
	channels, groups int // C, and the groups that are normalised, 0 for none
	chunk            int // anchors
	threads          int
}

func (g *geometricOp) sizes(in []tensor.Shape, threads int) geometricSizes {
	s := geometricSizes{
		b: in[gmAnchors][0], q: in[gmQueue][0], k: in[gmNeighbours][1] + 1, width: in[gmAnchors][1],
		tokens: g.tokens, d: in[gmWeight][1], out: in[gmWeight][0], threads: threads,
	}
	s.channels, s.groups = s.tokens*s.out, g.groups
	budget := g.budget
	if budget == 0 {
		budget = geometricBudget
	}
	// The larger of a point's features and a row of its kernel matrix counts.
	s.chunk = max(1, min(s.b, budget/(s.k*max(s.width, s.channels, s.k))))
	return s
}

// rows returns the points of a chunk.
func (s geometricSizes) rows() int { return s.chunk * s.k }

// own returns what one thread needs: see neighbourhood.
func (s geometricSizes) own() int { return working(s.k, max(s.width, s.channels)) }

// total returns the float32 values of scratch.
func (s geometricSizes) total() int {
	return s.rows()*(s.width+2*s.channels+max(1, s.groups)) + s.chunk*(s.k*s.k+s.out) + s.b + s.threads*s.own()
}

// geometricRun is what a step knows of its run. Slices are parts of the scratch.
type geometricRun struct {
	geometricSizes
	op *geometricOp
	c  *exec.Call

	x      []float32 // (chunk*K, D') points
	z, dz  []float32 // (chunk*K, C) what the head makes of them, and the gradient
	norms  []float32 // (chunk*K, groups) norms of z before its normalisation
	target []float32 // (chunk, K, K) kernel matrices of x
	bias   []float32 // (chunk, n_out) sums of dz
	losses []float32 // (B)
	work   []neighbourhood

	first, n int // anchors of this chunk
	// products of the threads.
	products                                   []gemm.Product
	gatherPart, projectPart, losePart, dwTiles func(worker, lo, hi int)
}

func newGeometricRun(g *geometricOp, c *exec.Call) *geometricRun {
	shapes := make([]tensor.Shape, len(c.In))
	for i, in := range c.In {
		shapes[i] = in.Shape
	}
	r := &geometricRun{op: g, geometricSizes: g.sizes(shapes, c.Engine.Threads()), c: c}
	r.work = make([]neighbourhood, r.threads)
	r.products = make([]gemm.Product, r.threads)
	r.gatherPart, r.projectPart, r.losePart, r.dwTiles = r.gather, r.project, r.lose, r.weightGradient
	return r
}

// bind divides the scratch.
func (r *geometricRun) bind() {
	rest := r.c.Scratch
	cut := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	rows := r.rows()
	r.x, r.z, r.dz = cut(rows*r.width), cut(rows*r.channels), cut(rows*r.channels)
	r.norms, r.target = cut(rows*max(1, r.groups)), cut(r.chunk*r.k*r.k)
	r.bias, r.losses = cut(r.chunk*r.out), cut(r.b)
	for i := range r.work {
		r.work[i].use(r.op.Options, r.k, max(r.width, r.channels), cut(r.own()))
	}
}

func (r *geometricRun) step() error {
	for i, n := range r.c.In[gmNeighbours].I32 {
		if n < -1 || int(n) >= r.q {
			return fmt.Errorf("ops: geometric: neighbour %d of anchor %d: want a row in [0, %d), or -1 for none", n,
				i/(r.k-1), r.q)
		}
	}
	r.bind()
	clear(r.c.Aux[0].F32)
	clear(r.c.Aux[1].F32)
	for r.first = 0; r.first < r.b; r.first += r.chunk {
		r.n = min(r.chunk, r.b-r.first)
		e, points := r.c.Engine, r.n*r.k
		e.For(r.n, 1, r.gatherPart)
		e.For(blocks(points*r.tokens, geometricRows), 1, r.projectPart)
		e.For(r.n, 1, r.losePart)
		e.For(blocks(r.out, geometricOut)*blocks(r.d, geometricColumns), 1, r.dwTiles)
		vector.SumRows(r.c.Aux[1].F32, r.bias[:r.n*r.out])
	}
	var sum float64
	for _, v := range r.losses {
		sum += float64(v)
	}
	r.c.Out.F32[0] = float32(sum / float64(r.b))
	return nil
}

// blocks returns how many blocks of the given size cover n.
func blocks(n, size int) int { return (n + size - 1) / size }

// neighbours returns the neighbours of anchor a of the chunk, nil if one is missing.
func (r *geometricRun) neighbours(a int) []int32 {
	at := (r.first + a) * (r.k - 1)
	rows := r.c.In[gmNeighbours].I32[at : at+r.k-1]
	for _, n := range rows {
		if n < 0 {
			return nil
		}
	}
	return rows
}

// gather copies the points of anchors lo to hi of the chunk and makes their kernel
// matrices while they are in the cache.
func (r *geometricRun) gather(worker, lo, hi int) {
	for a := lo; a < hi; a++ {
		x := r.x[a*r.k*r.width : (a+1)*r.k*r.width]
		rows := r.neighbours(a)
		if rows == nil {
			clear(x)
			continue
		}
		copy(x, r.c.In[gmAnchors].F32[(r.first+a)*r.width:(r.first+a+1)*r.width])
		for i, n := range rows {
			copy(x[(i+1)*r.width:(i+2)*r.width], r.c.In[gmQueue].F32[int(n)*r.width:])
		}
		w := &r.work[worker]
		w.measureRaw(x, r.width)
		w.weights(r.target[a*r.k*r.k : (a+1)*r.k*r.k])
	}
}

// project computes blocks lo to hi of the head's product with all tokens of the chunk.
func (r *geometricRun) project(worker, lo, hi int) {
	p := &r.products[worker]
	for block := lo; block < hi; block++ {
		from := block * geometricRows
		*p = gemm.Product{
			TransB: true, Alpha: 1, M: min(geometricRows, r.n*r.k*r.tokens-from), N: r.out, K: r.d, LDC: r.out,
			A: gemm.Matrix{F32: r.x[from*r.d:], LD: r.d}, B: gemm.Matrix{F32: r.c.In[gmWeight].F32, LD: r.d},
			C: r.z[from*r.out:],
		}
		if r.op.bias {
			p.Bias = r.c.In[gmBias].F32
		}
		r.c.Engine.MultiplySerial(p)
	}
}

// lose computes the losses of anchors lo to hi of the chunk and their gradients for what
// the head's product gave.
func (r *geometricRun) lose(worker, lo, hi int) {
	w := &r.work[worker]
	for a := lo; a < hi; a++ {
		dz := r.dz[a*r.k*r.channels : (a+1)*r.k*r.channels]
		bias := r.bias[a*r.out : (a+1)*r.out]
		clear(dz)
		clear(bias)
		r.losses[r.first+a] = 0
		if r.neighbours(a) == nil {
			continue
		}
		z := r.z[a*r.k*r.channels : (a+1)*r.k*r.channels]
		groups := r.op.groupsOf(r.groups)
		norms := r.norms[a*r.k*max(1, groups):]
		w.normalise(z, norms, groups)
		w.measure(z, r.channels)
		w.weights(w.w)
		r.losses[r.first+a] = w.compare(r.target[a*r.k*r.k:(a+1)*r.k*r.k], 1/float32(r.b))
		w.spread(dz, z)
		w.normaliseGrad(dz, z, norms, groups)
		vector.SumRows(bias, dz)
	}
}

// weightGradient adds tiles lo to hi of dz^T x.
func (r *geometricRun) weightGradient(worker, lo, hi int) {
	p, across := &r.products[worker], blocks(r.d, geometricColumns)
	for tile := lo; tile < hi; tile++ {
		row, col := tile/across*geometricOut, tile%across*geometricColumns
		*p = gemm.Product{
			TransA: true, Alpha: 1, Beta: 1,
			M: min(geometricOut, r.out-row), N: min(geometricColumns, r.d-col), K: r.n * r.k * r.tokens, LDC: r.d,
			A: gemm.Matrix{F32: r.dz[row:], LD: r.out}, B: gemm.Matrix{F32: r.x[col:], LD: r.d},
			C: r.c.Aux[0].F32[row*r.d+col:],
		}
		r.c.Engine.MultiplySerial(p)
	}
}
