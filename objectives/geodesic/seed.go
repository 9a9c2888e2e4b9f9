package geodesic

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// seeder chooses where a clustering begins.
type seeder struct {
	sample []int32   // candidates
	best   []float32 // largest likeness of each candidate to a centre
	chosen int       // the newest centre
	body   func(worker, lo, hi int)
}

// seedSample is the number of candidates of k-means++ per cluster, and the least of all.
// Each centre costs one pass over the candidates; all N points would make these passes
// dearer than the clustering itself.
const (
	seedSample    = 4
	seedSampleMin = 4096
)

// start makes centres have.. of want: rows of the points. "rows" takes one at random from
// each of as many equal stretches. "plusplus" is k-means++ (Arthur and Vassilvitskii 2007)
// over such a sample of points: the next centre is drawn with a probability proportional
// to the squared chord to the nearest centre so far, of unit vectors 2 - 2*dot. Points that coincide
// with a centre are never drawn, so fewer than want may be made.
func (k *kmeans) start(have, want int, init string, r *rand.Rand) int {
	if have >= want {
		return want
	}
	s := &k.seed
	if init == InitRows {
		k.draw(want-have, r)
		for i, j := range s.sample {
			copy(k.centre(have+i), k.row(int(j)))
		}
		return want
	}
	k.draw(min(k.n, max(seedSample*want, seedSampleMin)), r)
	s.best = grow(s.best, len(s.sample))
	vector.Fill(s.best, min(-1, 2*k.same-1))
	for s.chosen = 0; s.chosen < want; s.chosen++ {
		if s.chosen >= have {
			j := s.next(k, r)
			if j < 0 {
				break
			}
			copy(k.centre(s.chosen), k.row(int(s.sample[j])))
		}
		k.e.For(len(s.sample), 64, s.body)
	}
	return s.chosen
}

// draw samples m of the points, one from each of m equal stretches.
func (k *kmeans) draw(m int, r *rand.Rand) {
	s := &k.seed
	s.sample = grow(s.sample, m)
	for i := range m {
		lo, hi := i*k.n/m, (i+1)*k.n/m
		s.sample[i] = int32(lo + r.IntN(hi-lo))
	}
}

func (k *kmeans) seedPart(_, lo, hi int) {
	s := &k.seed
	c := k.centre(s.chosen)
	for j := lo; j < hi; j++ {
		d := k.metric.likeness(k.row(int(s.sample[j])), c)
		if k.metric.euclid && s.chosen == 0 {
			s.best[j] = d
			continue
		}
		s.best[j] = max(s.best[j], d)
	}
}

// next draws a candidate, or returns -1 if each coincides with a centre.
func (s *seeder) next(k *kmeans, r *rand.Rand) int {
	var total float64
	for _, b := range s.best {
		total += k.weight(b)
	}
	if total == 0 {
		return -1
	}
	u, last := r.Float64()*total, -1
	for j, b := range s.best {
		w := k.weight(b)
		if w == 0 {
			continue
		}
		last = j
		if u -= w; u < 0 {
			break
		}
	}
	return last
}

// weight is proportional to the squared distance of points of likeness b.
func (k *kmeans) weight(b float32) float64 {
	if b >= k.same {
		return 0
	}
	return k.far(b)
}
