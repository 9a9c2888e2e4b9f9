package geodesic

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// A chunk has so many points that their products with all centres stay in a core's second
// level cache until the largest of each is found, and enough for a fast product.
const (
	chunkProducts = 1 << 18
	chunkLeast    = 64
	chunkMost     = 1024
)

// unitTolerance is how far the squared length of a point may be from 1.
const unitTolerance = 2e-2

// kmeans clusters unit vectors by direction: each point belongs to the centre of largest
// dot product, and a centre is the normalised mean of its points (spherical k-means). It
// maximises the sum of the dot products, so neither step ever lowers that sum. On a product
// of spheres the mean is normalised on each of them, which is again the best centre: the dot
// product of flat rows is a sum over the spheres. Of Euclidean points a centre is the mean,
// and "largest dot product" stands for the smallest distance.
//
// The N x K products are never stored at once: each thread keeps those of one chunk of
// points, 1 MB. Chunks and the order of sums do not depend on the number of threads.
//
// Nearly all the time of a build goes into these products, 2*N*K*C operations for each
// iteration and for the last assignment.
type kmeans struct {
	channels int
	metric   metric
	same     float32 // likeness from which points count as one
	e        *kernel.Engine
	clustering

	chunk   int
	scratch []chunkScratch
	counts  []int32   // (K)
	tally   []int32   // (K) points of each Euclidean centre
	partial []float32 // (K, C) sums of a stretch of points
	sums    []float64 // (K, C)
	bad     []int32   // first row that is no point, of each worker
	seed    seeder
	share   share
	moved   int // the point that repair made a centre of

	// Euclidean points are assigned and summed by their differences from a point among
	// them: beside the lengths of points that all lie far from the origin, the differences
	// of their distances would be lost.
	mean    []float32 // (C) of the centres
	shifted []float32 // (K, C) centres less their mean
	half    []float32 // (K) half the squared length of these

	assignBody, sumBody, checkBody, stealBody, reachBody func(worker, lo, hi int)
}

// clustering is points and the centres that they belong to.
type clustering struct {
	x       []float32 // the rows
	rows    []int32   // which rows of x are clustered; nil: the first n
	n       int
	centres []float32 // (used, C)
	used    int
	owner   []int32   // (n)
	best    []float32 // (n) likeness to the own centre
}

// chunkScratch is the memory of one thread.
type chunkScratch struct {
	products []float32 // (chunk, K)
	gathered []float32 // (chunk, C), where rows are not adjacent, or Euclidean
	row      []float32 // (C)
}

func (k *kmeans) init(channels, clusters int) {
	k.channels = channels
	k.metric, k.same = metric{spheres: 1}, same
	k.reachBody = k.reachPart
	k.counts = make([]int32, clusters)
	k.partial = make([]float32, clusters*channels)
	k.sums = make([]float64, clusters*channels)
	k.assignBody, k.sumBody, k.checkBody, k.stealBody = k.assignPart, k.sumPart, k.checkPart, k.stealPart
	k.seed.body = k.seedPart
}

// prepare makes room for the threads of e.
func (k *kmeans) prepare(e *kernel.Engine) {
	k.e = e
	if n := e.Threads(); n > len(k.scratch) {
		k.scratch = append(k.scratch, make([]chunkScratch, n-len(k.scratch))...)
		k.bad = make([]int32, n)
	}
}

// row returns point j.
func (k *kmeans) row(j int) []float32 {
	if k.rows != nil {
		j = int(k.rows[j])
	}
	return k.x[j*k.channels : (j+1)*k.channels]
}

// centre returns centre i.
func (k *kmeans) centre(i int) []float32 { return k.centres[i*k.channels : (i+1)*k.channels] }

// check returns an error that names the first of n rows of x that is no point.
func (k *kmeans) check(e *kernel.Engine, x []float32, n int) error {
	k.prepare(e)
	k.x, k.rows, k.n = x, nil, n
	for i := range k.bad {
		k.bad[i] = int32(n)
	}
	e.For(n, 64, k.checkBody)
	first := n
	for _, b := range k.bad {
		first = min(first, int(b))
	}
	if first == n {
		return nil
	}
	return k.metric.explain(k.row(first), first)
}

func (k *kmeans) checkPart(worker, lo, hi int) {
	for j := lo; j < hi; j++ {
		if !k.metric.fits(k.row(j)) {
			k.bad[worker] = int32(j)
			return
		}
	}
}

// run clusters the points of c into at most most centres: the used ones of c are there to
// begin with, further ones are seeded. It returns how many there are after the last update;
// owner and best are of the centres before it. objective receives the mean of
// 1 - dot product after each assignment.
func (k *kmeans) run(e *kernel.Engine, c clustering, most int, o Options, r *rand.Rand, objective []float64) (int,
	[]float64) {
	k.prepare(e)
	k.clustering = c
	k.setSame()
	k.used = k.start(c.used, min(most, c.n), o.Init, r)
	for range o.Iterations {
		k.assign()
		objective = append(objective, k.cost())
		k.repair()
		k.update()
	}
	return k.used, objective
}

// nearest finds the centre of largest dot product for the points of c, and that product.
// Of equal ones the first centre wins.
func (k *kmeans) nearest(e *kernel.Engine, c clustering) {
	k.prepare(e)
	k.clustering = c
	k.assign()
}

// assign sets owner and best.
func (k *kmeans) assign() {
	k.chunk = min(max(chunkProducts/k.used, chunkLeast), chunkMost)
	need, gather := k.chunk*k.used, 0
	if k.rows != nil || k.metric.euclid {
		gather = k.chunk * k.channels
	}
	for i := range k.scratch {
		s := &k.scratch[i]
		s.products, s.gathered = grow(s.products, need), grow(s.gathered, gather)
	}
	if k.metric.euclid {
		k.shift()
	}
	chunks := (k.n + k.chunk - 1) / k.chunk
	if k.shares() {
		k.assignShared(chunks)
		return
	}
	k.e.For(chunks, 1, k.assignBody)
}

// shift prepares the Euclidean centres for assignPart.
func (k *kmeans) shift() {
	c := k.channels
	k.mean, k.half, k.shifted = grow(k.mean, c), grow(k.half, k.used), grow(k.shifted, k.used*c)
	clear(k.mean)
	for i := range k.used {
		vector.Axpy(k.mean, 1/float32(k.used), k.centre(i))
	}
	for i := range k.used {
		s := k.shifted[i*c : (i+1)*c]
		vector.Sub(s, k.centre(i), k.mean)
		k.half[i] = float32(vector.SumSq(s) / 2)
	}
}

func (k *kmeans) assignPart(worker, lo, hi int) {
	c, s := k.channels, &k.scratch[worker]
	for part := lo; part < hi; part++ {
		from := (k.share.first + part) * k.chunk
		n := min(k.chunk, k.n-from)
		x, centres := s.gathered, k.centres
		switch {
		case k.metric.euclid:
			centres = k.shifted
			for j := range n {
				vector.Sub(x[j*c:(j+1)*c], k.row(from+j), k.mean)
			}
		case k.rows == nil:
			x = k.x[from*c : (from+n)*c]
		default:
			for j := range n {
				copy(x[j*c:(j+1)*c], k.row(from+j))
			}
		}
		k.e.GemmSerial(false, true, n, k.used, c, 1/float32(k.metric.spheres), x, c, centres, c, 0, s.products, k.used)
		for j := range n {
			y := s.products[j*k.used : (j+1)*k.used]
			if k.metric.euclid {
				vector.Sub(y, y, k.half)
			}
			i := vector.ArgMax(y)
			k.owner[from+j], k.best[from+j] = int32(i), y[i]
			if k.metric.euclid {
				k.best[from+j] = k.metric.likeness(k.row(from+j), k.centre(i))
			}
		}
	}
}

// far returns what k-means sums over points of likeness b with their centre: 1 - the mean
// cosine of the spheres, or the squared Euclidean distance.
func (k *kmeans) far(b float32) float64 {
	if k.metric.euclid {
		return -float64(b)
	}
	return 1 - float64(b)
}

// setSame sets the likeness from which points count as one. Euclidean points do below a
// millionth of their length, since the mean of equal rows may be off by its rounding.
func (k *kmeans) setSame() {
	if !k.metric.euclid {
		return
	}
	var s float64
	for j := range k.n {
		s += vector.SumSq(k.row(j))
	}
	k.same = float32(-1e-12 * s / float64(k.n))
}

// reaches replaces the likenesses of points and their centres by distances.
func (k *kmeans) reaches() {
	if k.metric.one() {
		angles(k.best[:k.n])
		return
	}
	k.e.For(k.n, 64, k.reachBody)
}

func (k *kmeans) reachPart(_, lo, hi int) {
	for j := lo; j < hi; j++ {
		k.best[j] = k.metric.distance(k.row(j), k.centre(int(k.owner[j])))
	}
}

// cost returns the mean over the points of 1 - the mean cosine with the centre, or of the
// squared Euclidean distance to it.
func (k *kmeans) cost() float64 {
	var s float64
	for _, b := range k.best[:k.n] {
		s += k.far(b)
	}
	return s / float64(k.n)
}

// update sets each centre to the mean of its points, normalised on each sphere. A sphere of
// a centre on which the points cancel out stays.
func (k *kmeans) update() {
	size := k.used * k.channels
	clear(k.sums[:size])
	clear(k.partial[:size])
	// The sums are split by channel, so that their order is that of the points.
	k.e.For(k.channels, 32, k.sumBody)
	if k.metric.euclid {
		k.tally = grow(k.tally, k.used)
		clear(k.tally)
		for _, o := range k.owner[:k.n] {
			k.tally[o]++
		}
	}
	for i := range k.used {
		sum, c := k.sums[i*k.channels:(i+1)*k.channels], k.centre(i)
		if k.metric.euclid {
			if n := k.tally[i]; n > 0 {
				for j, v := range sum {
					c[j] = float32(float64(c[j]) + v/float64(n))
				}
			}
			continue
		}
		n := k.channels / k.metric.spheres
		for lo := 0; lo < k.channels; lo += n {
			normalise(c[lo:lo+n], sum[lo:lo+n])
		}
	}
}

// normalise sets c to the direction of sum. It stays where sum is nearly 0.
func normalise(c []float32, sum []float64) {
	var sq float64
	for _, v := range sum {
		sq += v * v
	}
	if sq < 1e-12 {
		return
	}
	scale := 1 / math.Sqrt(sq)
	for j, v := range sum {
		c[j] = float32(v * scale)
	}
}

// sumPart sums the channels [lo, hi) of the points of each centre, of Euclidean points their
// differences from it: in float32 over stretches of points, which are summed in float64.
func (k *kmeans) sumPart(worker, lo, hi int) {
	stretch := max(4096, 8*k.used)
	s := &k.scratch[worker]
	s.row = grow(s.row, k.channels)
	for from := 0; from < k.n; from += stretch {
		to := min(from+stretch, k.n)
		for j := from; j < to; j++ {
			i := int(k.owner[j]) * k.channels
			x := k.row(j)[lo:hi]
			if k.metric.euclid {
				d := s.row[:hi-lo]
				vector.Sub(d, x, k.centres[i+lo:i+hi])
				x = d
			}
			vector.Add(k.partial[i+lo:i+hi], k.partial[i+lo:i+hi], x)
		}
		for i := 0; i < k.used*k.channels; i += k.channels {
			part, sum := k.partial[i+lo:i+hi], k.sums[i+lo:i+hi]
			for c, v := range part {
				sum[c] += float64(v)
			}
			clear(part)
		}
	}
}

// grow returns a slice of n elements, b if it is long enough.
func grow[T any](b []T, n int) []T {
	if n > cap(b) {
		return make([]T, n)
	}
	return b[:n]
}
