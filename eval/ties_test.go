package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// sameRanks compares ranks without their ties.
func sameRanks(a, b *Ranks) bool {
	return slices.Equal(a.I2T, b.I2T) && slices.Equal(a.T2I, b.T2I)
}

// orders calls f with every order of n candidates.
func orders(n int, f func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(k int)
	walk = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// oracle is the mean of R@1, R@5 and the rank of a query over all orders of its candidates among equal scores.
func oracle(scores []float32, right func(k int) bool) (r1, r5, rank float64) {
	best := float32(math.Inf(-1))
	for k, s := range scores {
		if right(k) && s > best {
			best = s
		}
	}
	count := 0.0
	orders(len(scores), func(order []int) {
		before := 0
		for _, s := range scores {
			if s > best {
				before++
			}
		}
		for _, k := range order {
			if scores[k] == best {
				if right(k) {
					break
				}
				before++
			}
		}
		count++
		rank += float64(before) + 1
		if before < 1 {
			r1 += 100
		}
		if before < 5 {
			r5 += 100
		}
	})
	return r1 / count, r5 / count, rank / count
}

// TestMeanOverTies compares with all orders of all candidates, of small galleries whose scores are few whole numbers.
func TestMeanOverTies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	tied := 0
	for range 60 {
		n := 2 + r.IntN(2)
		texts := n + r.IntN(7-n)
		ids, of := make([]int64, n), make([]int, texts)
		for i := range ids {
			ids[i] = int64(r.IntN(n)) // images of one id have each other's texts
		}
		for j := range of {
			of[j] = j % n
		}
		c := check.Get(NewCorrespondence(ids, of))(t)
		scores := make([]float32, n*texts)
		for k := range scores {
			scores[k] = float32(r.IntN(3))
		}
		ranks := check.Get(Rank(c, 2, Matrix(scores, texts)))(t)
		var want Metrics
		add := func(d *Direction, of []float32, queries int, right func(k int) bool) {
			r1, r5, rank := oracle(of, right)
			m := float64(queries)
			d.R1, d.R5, d.MeanRank = d.R1+r1/m, d.R5+r5/m, d.MeanRank+rank/m
		}
		for i := range n {
			add(&want.I2T, scores[i*texts:][:texts], n, func(j int) bool { return c.right(i, j) })
		}
		for j := range texts {
			column := make([]float32, n)
			for i := range column {
				column[i] = scores[i*texts+j]
			}
			add(&want.T2I, column, texts, func(i int) bool { return c.right(i, j) })
		}
		got, worst := ranks.MeanMetrics(), ranks.Metrics()
		for _, x := range [][3]float64{{got.I2T.R1, want.I2T.R1, worst.I2T.R1}, {got.I2T.R5, want.I2T.R5, worst.I2T.R5},
			{got.T2I.R1, want.T2I.R1, worst.T2I.R1}, {got.T2I.R5, want.T2I.R5, worst.T2I.R5},
			{got.I2T.MeanRank, want.I2T.MeanRank, math.NaN()}, {got.T2I.MeanRank, want.T2I.MeanRank, math.NaN()}} {
			if math.Abs(x[0]-x[1]) > 1e-9 || x[0] < x[2]-1e-9 {
				t.Fatalf("%v of %d texts: got %v, all orders give %v, the worst %v", scores, texts, x[0], x[1], x[2])
			}
			if x[0] > x[2]+1e-9 {
				tied++
			}
		}
	}
	if tied < 50 {
		t.Errorf("ties moved %d figures alone", tied)
	}
}

// TestMeanWithoutTies: the metrics of distinct scores are the same, the median too; of equal ones they are chance.
func TestMeanWithoutTies(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	const n = 40
	ids, of := make([]int64, n), make([]int, n)
	for i := range ids {
		ids[i], of[i] = int64(i), i
	}
	c := check.Get(NewCorrespondence(ids, of))(t)
	scores := make([]float32, n*n)
	for k := range scores {
		scores[k] = r.Float32()
	}
	ranks := check.Get(Rank(c, 7, Matrix(scores, n)))(t)
	near := func(a, b Direction) bool {
		return math.Abs(a.R1-b.R1) < 1e-9 && math.Abs(a.R5-b.R5) < 1e-9 && math.Abs(a.R10-b.R10) < 1e-9 &&
			math.Abs(a.MeanRank-b.MeanRank) < 1e-9 && a.MedianRank == b.MedianRank
	}
	if a, b := ranks.MeanMetrics(), ranks.Metrics(); !near(a.I2T, b.I2T) || !near(a.T2I, b.T2I) {
		t.Errorf("without ties: %+v and %+v", a, b)
	}
	clear(scores)
	ranks = check.Get(Rank(c, 7, Matrix(scores, n)))(t)
	a, b := ranks.MeanMetrics(), c.Chance()
	if b.I2T.MedianRank = a.I2T.MedianRank; !near(a.I2T, b.I2T) {
		t.Errorf("of equal scores: %+v, chance %+v", a.I2T, b.I2T)
	}
	if w := ranks.Metrics(); w.I2T.R1 != 0 || w.I2T.R10 != 0 {
		t.Errorf("ties against the model: %+v", w.I2T)
	}
}
