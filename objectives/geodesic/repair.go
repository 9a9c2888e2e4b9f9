package geodesic

import "github.com/geoalign/geoalign/internal/kernel/vector"

// same is the mean cosine from which unit vectors count as one point: nearer ones have the
// same angle, see angles. For Euclidean rows see setSame.
const same = vector.AcosLimit

// repair gives every centre without points the point that is farthest from its own centre
// (of equal ones the first), together with all points that are nearer to that point than
// to their centre. So no likeness falls. Once every point coincides with its centre
// there is nothing left to give, and centres without points are taken out.
func (k *kmeans) repair() {
	clear(k.counts[:k.used])
	for _, o := range k.owner[:k.n] {
		k.counts[o]++
	}
	// A centre may lose all its points to another, hence the second round and its end.
	for round := 0; round < 2; round++ {
		for i := range k.used {
			if k.counts[i] > 0 {
				continue
			}
			far := 0
			for j, b := range k.best[:k.n] {
				if b < k.best[far] {
					far = j
				}
			}
			if k.best[far] >= k.same {
				k.compact()
				return
			}
			k.moved = far
			copy(k.centre(i), k.row(far))
			k.e.For(k.n, 256, k.stealBody)
			k.recount(i)
		}
	}
}

// stealPart finds the points that are nearer to the moved point than to their centre. They
// are marked by the complement of their owner for recount.
func (k *kmeans) stealPart(_, lo, hi int) {
	c := k.row(k.moved)
	for j := lo; j < hi; j++ {
		if d := k.metric.likeness(k.row(j), c); d > k.best[j] || j == k.moved {
			k.owner[j], k.best[j] = ^k.owner[j], d
		}
	}
}

// recount moves the marked points to centre i.
func (k *kmeans) recount(i int) {
	for j, o := range k.owner[:k.n] {
		if o < 0 {
			k.counts[^o]--
			k.counts[i]++
			k.owner[j] = int32(i)
		}
	}
}

// compact takes out centres without points and keeps the order of the others.
func (k *kmeans) compact() {
	kept := 0
	for i := range k.used {
		if k.counts[i] == 0 {
			continue
		}
		copy(k.centre(kept), k.centre(i))
		k.counts[i] = int32(kept) // the new index
		kept++
	}
	for j, o := range k.owner[:k.n] {
		k.owner[j] = k.counts[o]
	}
	k.used = kept
}

// finish assigns the points to the centres a last time and takes out centres without any.
func (k *kmeans) finish() int {
	k.assign()
	clear(k.counts[:k.used])
	for _, o := range k.owner[:k.n] {
		k.counts[o]++
	}
	k.compact()
	return k.used
}
