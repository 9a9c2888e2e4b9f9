package eval

import "sort"

// Chance returns the expected metrics of a model that ranks at random without
// ties. For a query with m positives among n candidates R@k = 1 - C(n-m, k)/C(n, k),
// the chance that not all of the first k are wrong, which is k/n for one
// positive; it is averaged over the queries. The rank counted here is that of the
// first positive, as everywhere in the package; the median is the smallest rank that
// at least half of the queries reach on average.
func (c *Correspondence) Chance() Metrics {
	n, t := c.NumImages(), c.NumTexts()
	images, texts := map[int]float64{}, map[int]float64{} // number of positives -> share of the queries
	for i := range n {
		images[len(c.texts(i))]++
	}
	for m := range images {
		images[m] /= float64(n)
	}
	for j := range t {
		texts[c.images(j)]++
	}
	for m := range texts {
		texts[m] /= float64(t)
	}
	return Metrics{I2T: chance(t, images), T2I: chance(n, texts)}
}

// chance handles queries that have m positives among n candidates; share gives
// the share of queries for each m. Subtracting positives ranked after the first
// changes nothing: only wrong candidates stand before the first positive.
func chance(n int, share map[int]float64) Direction {
	counts := make([]int, 0, len(share)) // fixed order of summation
	for m := range share {
		counts = append(counts, m)
	}
	sort.Ints(counts)
	var d Direction
	miss := make([]float64, len(counts)) // chance that no positive is among the first k
	for i, m := range counts {
		miss[i] = 1
		// The first of m positives among n places stands at (n+1)/(m+1) on average.
		d.MeanRank += share[m] * float64(n+1) / float64(m+1)
	}
	for k := 1; k <= n; k++ {
		found := 0.0
		for i, m := range counts {
			miss[i] *= max(0, float64(n-m-k+1)) / float64(n-k+1)
			found += share[m] * (1 - miss[i])
		}
		if d.MedianRank == 0 && found >= 0.5-1e-12 {
			d.MedianRank = float64(k)
		}
		for _, r := range []struct {
			k int
			v *float64
		}{{1, &d.R1}, {5, &d.R5}, {10, &d.R10}} {
			if k == r.k || (k == n && k < r.k) {
				*r.v = 100 * found
			}
		}
		if d.MedianRank > 0 && k >= 10 {
			break
		}
	}
	return d
}
