package align

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/rng"
)

// ForecastOptions are the settings of a forecast.
type ForecastOptions struct {
	Prepare
	K            int // neighbours; 0: 10
	Rows         int // pairs that are looked at, evenly spaced over all; 0: 1000
	Permutations int // of the pairing, for the null level; 0: 100
	Seed         uint64
}

// Level is a measure beside what it is when the pairs are shuffled.
type Level struct {
	Value     float64
	Null      float64 // mean over permutations
	Deviation float64 // standard deviation over permutations
	P         float64 // share of permutations, and of the pairing itself, that reach Value
}

// Alignability says how alike the neighbourhoods of two spaces are before any map is fitted.
// Every level depends on K and on the number of pairs: compare forecasts of equal ones.
type Alignability struct {
	Pairs int // that were looked at
	K     int
	// Mutual is the mean share of a row's K nearest neighbours that are the same pairs in both
	// spaces, in [0, 1] (mutual k-NN of Huh et al. 2024). Its null level is K/(n-1).
	Mutual Level
	// CKA is centred kernel alignment of linear kernels, by unbiased estimates of HSIC (Kornblith
	// et al. 2019; Song et al. 2012, eq. 5), at most about 1. Its null level is 0.
	CKA Level
	// Agreement is how near the K neighbours of one space are in the other: the share of the
	// other rows that are farther, mean over rows, neighbours and both directions. 1 - K/(2n)
	// about where neighbourhoods agree, 0.5 by chance.
	Agreement Level
}

// forecastStream names the random numbers of the permutations.
const forecastStream = "align/forecast"

// Forecast compares the neighbourhoods of pairs in their two spaces.
func Forecast(e *compute.Engine, p Pairs, o ForecastOptions) (*Alignability, error) {
	if err := p.check("a forecast", 4); err != nil {
		return nil, err
	}
	if o.K < 0 || o.Rows < 0 || o.Permutations < 0 {
		return nil, fmt.Errorf("align: K, Rows and Permutations of a forecast must be >= 0 (got %d, %d and %d)", o.K, o.Rows, o.Permutations)
	}
	if o.Rows == 0 {
		o.Rows = 1000
	}
	p = p.Select(spread(p.Len(), max(4, o.Rows)))
	n := p.Len()
	if o.K == 0 {
		o.K = min(10, n-2)
	}
	if o.K > n-2 {
		return nil, fmt.Errorf("align: K of a forecast must be at most %d, for %d pairs (got %d): lower it or add pairs", n-2, n, o.K)
	}
	if o.Permutations == 0 {
		o.Permutations = 100
	}
	var spaces [2]*neighbourhoods
	m := &Moments{Prepare: o.Prepare, Count: n}
	for _, s := range []Side{Image, Text} {
		r := p.Of(s)
		if err := m.means(e, s, r); err != nil {
			return nil, err
		}
		rows, err := readAll(e, s, r)
		if err != nil {
			return nil, err
		}
		m.prepareRows(e, s, rows)
		if spaces[s], err = newNeighbourhoods(e, s, rows, n, o.K); err != nil {
			return nil, err
		}
	}
	compare := func(order []int) [3]float64 { return compareSpaces(e, spaces[Image], spaces[Text], order) }
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	levels := newLevels(compare(order))
	random := rng.New(o.Seed, forecastStream, 0)
	for range o.Permutations {
		random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		levels.add(compare(order))
	}
	out := levels.done()
	return &Alignability{Pairs: n, K: o.K, Mutual: out[0], CKA: out[1], Agreement: out[2]}, nil
}

// neighbourhoods is one space of a forecast.
type neighbourhoods struct {
	n, k    int
	kernel  []float64 // (n, n) products with a diagonal of 0
	sums    []float64 // (n) of its rows
	total   float64
	self    float64   // HSIC of the kernel with itself
	nearest []int32   // (n, k), the nearest first
	share   []float32 // (n, n): the share of other rows that are farther from row i than j is
}

// newNeighbourhoods ranks the neighbours of prepared rows.
func newNeighbourhoods(e *compute.Engine, s Side, rows []float32, n, k int) (*neighbourhoods, error) {
	d := len(rows) / n
	products := make([]float32, n*n)
	e.Gemm(false, true, n, n, d, 1, rows, d, rows, d, 0, products, n)
	h := &neighbourhoods{n: n, k: k, kernel: make([]float64, n*n), sums: make([]float64, n), nearest: make([]int32, n*k), share: make([]float32, n*n)}
	e.For(n, 8, func(_, lo, hi int) {
		order := make([]int32, 0, n)
		for i := lo; i < hi; i++ {
			row := products[i*n:][:n]
			order = order[:0]
			for j := range row {
				if j != i {
					order = append(order, int32(j))
					h.kernel[i*n+j] = float64(row[j])
					h.sums[i] += float64(row[j])
				}
			}
			slices.SortStableFunc(order, func(a, b int32) int {
				switch {
				case row[a] > row[b]:
					return -1
				case row[a] < row[b]:
					return 1
				}
				return 0
			})
			copy(h.nearest[i*k:][:k], order)
			for rank, j := range order {
				h.share[i*n+int(j)] = 1 - float32(rank)/float32(n-2)
			}
		}
	})
	for _, v := range h.sums {
		h.total += v
	}
	same := make([]int, n)
	for i := range same {
		same[i] = i
	}
	h.self = hsic(e, h, h, same)
	if !(h.self > 0) {
		return nil, fmt.Errorf("align: the %d rows of the %ss have no shape to compare: a forecast needs rows that differ", n, s)
	}
	return h, nil
}

// hsic is the unbiased estimate of HSIC (Song et al. 2012, eq. 5) for kernels without their
// diagonals, K of x and L of y, whose item order[i] is paired with item i:
//
//	(tr(K L) + sum K sum L / ((n-1)(n-2)) - 2/(n-2) 1^T K L 1) / (n (n-3))
func hsic(e *compute.Engine, x, y *neighbourhoods, order []int) float64 {
	n := x.n
	rows := make([]float64, n)
	e.For(n, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			k, l := x.kernel[i*n:][:n], y.kernel[order[i]*n:][:n]
			var sum float64
			for j, v := range k {
				sum += v * l[order[j]]
			}
			rows[i] = sum - 2/float64(n-2)*x.sums[i]*y.sums[order[i]]
		}
	})
	total := x.total * y.total / float64((n-1)*(n-2))
	for _, v := range rows {
		total += v
	}
	return total / float64(n*(n-3))
}

// compareSpaces returns mutual neighbours, CKA and agreement where item order[i] of y is
// paired with item i of x.
func compareSpaces(e *compute.Engine, x, y *neighbourhoods, order []int) [3]float64 {
	n, k := x.n, x.k
	inverse := make([]int, n)
	for i, j := range order {
		inverse[j] = i
	}
	near := make([]bool, n)
	var mutual int
	var share float64
	for i := range n {
		for _, j := range y.nearest[order[i]*k:][:k] {
			near[inverse[j]] = true
			share += float64(x.share[i*n+inverse[j]])
		}
		for _, j := range x.nearest[i*k:][:k] {
			if near[j] {
				mutual++
			}
			share += float64(y.share[order[i]*n+order[j]])
		}
		clear(near)
	}
	cka := hsic(e, x, y, order) / math.Sqrt(x.self*y.self)
	return [3]float64{float64(mutual) / float64(n*k), cka, share / float64(2*n*k)}
}

// levels collects measures under permutations.
type levels struct {
	value [3]float64
	null  [3][]float64
}

func newLevels(value [3]float64) *levels { return &levels{value: value} }

func (l *levels) add(v [3]float64) {
	for i := range v {
		l.null[i] = append(l.null[i], v[i])
	}
}

// done returns the levels.
func (l *levels) done() (out [3]Level) {
	for i, null := range l.null {
		reached := 1
		var sum, squares float64
		for _, v := range null {
			sum += v
			if v >= l.value[i] {
				reached++
			}
		}
		mean := sum / float64(len(null))
		for _, v := range null {
			squares += (v - mean) * (v - mean)
		}
		out[i] = Level{Value: l.value[i], Null: mean, P: float64(reached) / float64(len(null)+1)}
		if len(null) > 1 {
			out[i].Deviation = math.Sqrt(squares / float64(len(null)-1))
		}
	}
	return out
}
