package eval

import (
	"math"
	"sort"
)

// Direction holds the metrics of one direction of retrieval.
type Direction struct {
	R1, R5, R10 float64 // percent of queries with a positive among the first 1, 5, 10
	MeanRank    float64 // from 1
	MedianRank  float64 // from 1
}

// RecallMean is the mean of R@1, R@5 and R@10.
func (d Direction) RecallMean() float64 { return (d.R1 + d.R5 + d.R10) / 3 }

// Metrics holds the metrics of both directions.
type Metrics struct {
	I2T Direction // image queries, texts retrieved ("text retrieval")
	T2I Direction // text queries, images retrieved ("image retrieval")
}

// RSum is the sum of the six recalls.
func (m Metrics) RSum() float64 {
	return m.I2T.R1 + m.I2T.R5 + m.I2T.R10 + m.T2I.R1 + m.T2I.R5 + m.T2I.R10
}

// RMean is the mean of the recalls of both directions, by which checkpoints are
// compared.
func (m Metrics) RMean() float64 { return (m.I2T.RecallMean() + m.T2I.RecallMean()) / 2 }

// Metrics returns the metrics of the ranks.
func (r *Ranks) Metrics() Metrics {
	return Metrics{I2T: direction(r.I2T), T2I: direction(r.T2I)}
}

// MeanMetrics returns the metrics that are expected when equal scores are put into a random order, instead of the
// order against the model that [Ranks.Metrics] has. With w wrong and p right candidates that tie with the best right
// one of a query, and b above them, that query counts for R@k by 1 - C(w, k-b)/C(w+p, k-b), the probability that not
// all of the first k are wrong, and by b + w/(p+1) as its mean rank, of which the median is taken too. Without ties
// both are the same.
func (r *Ranks) MeanMetrics() Metrics {
	return Metrics{I2T: meanDirection(r.I2T, r.I2TTies), T2I: meanDirection(r.T2I, r.T2ITies)}
}

// meanDirection is direction over all orders of what ties.
func meanDirection(ranks []int, ties []Tie) (d Direction) {
	n := len(ranks)
	if n == 0 {
		return Direction{}
	}
	expected := make([]float64, n)
	for q, rank := range ranks {
		w, p := tieOf(ties, q).Wrong, tieOf(ties, q).Right
		before := rank - w
		expected[q] = float64(before) + float64(w)/float64(p+1)
		d.MeanRank += expected[q] / float64(n)
		for _, x := range []struct {
			k  int
			of *float64
		}{{1, &d.R1}, {5, &d.R5}, {10, &d.R10}} {
			*x.of += 100 * foundWithin(x.k-before, w, p) / float64(n)
		}
	}
	sort.Float64s(expected)
	d.MeanRank++
	d.MedianRank = math.Floor((expected[(n-1)/2]+expected[n/2])/2) + 1
	return d
}

// foundWithin is the probability that one of p right candidates is among the first k of w+p in a random order.
func foundWithin(k, w, p int) float64 {
	if k < 1 {
		return 0
	}
	miss := 1.0
	for i := range k {
		miss *= max(0, float64(w-i)) / float64(w+p-i)
		if miss == 0 {
			break
		}
	}
	return 1 - miss
}

// direction summarises 0-based ranks.
func direction(ranks []int) Direction {
	n := len(ranks)
	if n == 0 {
		return Direction{}
	}
	sorted := append([]int(nil), ranks...)
	sort.Ints(sorted)
	sum := 0
	for _, r := range sorted {
		sum += r
	}
	recall := func(k int) float64 { return 100 * float64(sort.SearchInts(sorted, k)) / float64(n) }
	return Direction{
		R1: recall(1), R5: recall(5), R10: recall(10),
		MeanRank:   float64(sum)/float64(n) + 1,
		MedianRank: float64((sorted[(n-1)/2]+sorted[n/2])/2) + 1,
	}
}

// Mean returns the mean of each metric over several results, such as the folds of a
// gallery.
func Mean(all []Metrics) Metrics {
	avg := func(of func(m *Metrics) *Direction) Direction {
		mean := func(value func(d *Direction) float64) float64 {
			return meanOf(all, func(m *Metrics) float64 { return value(of(m)) })
		}
		return Direction{
			R1:         mean(func(d *Direction) float64 { return d.R1 }),
			R5:         mean(func(d *Direction) float64 { return d.R5 }),
			R10:        mean(func(d *Direction) float64 { return d.R10 }),
			MeanRank:   mean(func(d *Direction) float64 { return d.MeanRank }),
			MedianRank: mean(func(d *Direction) float64 { return d.MedianRank }),
		}
	}
	return Metrics{
		I2T: avg(func(m *Metrics) *Direction { return &m.I2T }),
		T2I: avg(func(m *Metrics) *Direction { return &m.T2I }),
	}
}

// meanOf is the mean of a value over several results: of 1 everywhere it is 1, and not a little less.
func meanOf[T any](all []T, value func(x *T) float64) (sum float64) {
	for i := range all {
		sum += value(&all[i])
	}
	return sum / float64(len(all))
}
