package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
)

var metrics = []Metric{Cosine, Inner, L2}

// engine returns an engine of some threads without a library.
func engine(t testing.TB, threads int) *compute.Engine {
	t.Helper()
	e, err := compute.New(compute.Options{Backend: "builtin", Threads: threads})
	if err != nil {
		e = check.Get(compute.New(compute.Options{Backend: "plain", Threads: threads}))(t)
	}
	t.Cleanup(e.Close)
	return e
}

func pool(t testing.TB, x []float32, width int) Pool {
	t.Helper()
	return check.Get(Memory(x, width))(t)
}

// normal returns n rows of d normal numbers.
func normal(r *rand.Rand, n, d int) []float32 {
	x := make([]float32, n*d)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// naive sorts all rows by the definition of the metric in float64.
func naive(m Metric, x []float32, d int, q []float32, k int, skip int32) (rows []int32, scores []float64) {
	type pair struct {
		row   int32
		score float64
	}
	var all []pair
	for i := range len(x) / d {
		var dot, xx, qq, dd float64
		for c := range d {
			a, b := float64(x[i*d+c]), float64(q[c])
			dot, xx, qq, dd = dot+a*b, xx+a*a, qq+b*b, dd+(a-b)*(a-b)
		}
		s := map[Metric]float64{Cosine: dot / math.Sqrt(xx*qq), Inner: dot, L2: -math.Sqrt(dd)}[m]
		if int32(i) != skip {
			all = append(all, pair{int32(i), s})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	for _, p := range all[:k] {
		rows, scores = append(rows, p.row), append(scores, p.score)
	}
	return rows, scores
}

// mixture returns n rows of width d about centres of their own: each lies in a plane of few
// directions with some noise, as features of related images do.
func mixture(r *rand.Rand, n, d, centres, directions int, noise float64) []float32 {
	centre, basis := normal(r, centres, d), normal(r, centres*directions, d)
	x := make([]float32, n*d)
	for i := range n {
		c := r.IntN(centres)
		row := x[i*d : (i+1)*d]
		copy(row, centre[c*d:])
		for b := range directions {
			w := float32(r.NormFloat64() / math.Sqrt(float64(directions)))
			for j := range row {
				row[j] += w * basis[(c*directions+b)*d+j]
			}
		}
		for j := range row {
			row[j] += float32(noise * r.NormFloat64())
		}
	}
	return x
}
