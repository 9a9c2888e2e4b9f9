package align

import (
	"fmt"

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
	// CKAError is the standard error of CKA.Value over the choice of pairs, 0 where fewer than ten were looked at.
	CKAError float64
	// Agreement is how near the K neighbours of one space are in the other: the share of the
	// other rows that are farther, mean over rows, neighbours and both directions. 1 - K/(2n)
	// about where neighbourhoods agree, 0.5 by chance.
	Agreement Level
	// Permutations is how many shuffles there were. Of fewer than LeastPermutations no share can be small.
	Permutations int
}

// Names of the random numbers of the permutations, and of the orders of equally near rows, one of each side.
const (
	forecastStream = "align/forecast"
	tiesStream     = "align/forecast/ties"
)

// Forecast compares the neighbourhoods of pairs in their two spaces. What is shuffled are pairs, so they must
// not know of each other: give each image once, with one of its texts. Several captions of one image are near each
// other and their images the same row, which makes spaces alike that have nothing in common.
func Forecast(e *compute.Engine, p Pairs, o ForecastOptions) (*Alignability, error) {
	if err := p.check("a forecast", 4); err != nil {
		return nil, err
	}
	if o.K < 0 || o.Rows < 0 || o.Permutations < 0 {
		return nil, fmt.Errorf("align: K, Rows and Permutations of a forecast must be >= 0 (got %d, %d and %d)", o.K,
			o.Rows, o.Permutations)
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
		if spaces[s], err = newNeighbourhoods(e, s, rows, n, o.K,
			rng.New(o.Seed, tiesStream, uint64(s)).Perm(n)); err != nil {
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
	return &Alignability{Pairs: n, K: o.K, Mutual: out[0], CKA: out[1],
		CKAError: ckaError(e, spaces[Image], spaces[Text]), Agreement: out[2], Permutations: o.Permutations}, nil
}
