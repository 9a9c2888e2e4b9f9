package ablation

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Level is the probability of a difference where there is none, below which a test
// counts two runs as different.
const Level = 0.05

// Summary describes the values of a metric over seeds.
type Summary struct {
	N    int     // values
	Mean float64 // NaN without any
	SD   float64 // sample standard deviation, with N-1 below the sum; NaN for N < 2
}

// Summarise returns the mean and the standard deviation of x.
func Summarise(x []float64) Summary {
	s := Summary{N: len(x), Mean: math.NaN(), SD: math.NaN()}
	if s.N == 0 {
		return s
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	s.Mean = sum / float64(s.N)
	if s.N > 1 {
		squares := 0.0
		for _, v := range x {
			squares += (v - s.Mean) * (v - s.Mean)
		}
		s.SD = math.Sqrt(squares / float64(s.N-1))
	}
	return s
}

// Test is a two-sided t-test of equal means.
type Test struct {
	Kind string  `json:"kind"` // paired or welch
	T    float64 `json:"-"`    // may be infinite
	DF   float64 `json:"df"`
	P    float64 `json:"p"`

	Holm *float64 `json:"p_holm,omitempty"` // P corrected for the number of comparisons
}

// shown is the p of the tables: corrected where it is.
func (t *Test) shown() *float64 {
	if t.Holm != nil {
		return t.Holm
	}
	return &t.P
}

// Differs reports whether the test tells the means apart.
func (t *Test) Differs() bool { return t != nil && t.P < Level }

// Compare tests whether a and b, values by seed, have the same mean: paired where their
// seeds are the same, else with Welch's test. It is nil with fewer than two values on a
// side, of which nothing can be said.
func Compare(a, b map[int64]float64) *Test {
	if len(a) < 2 || len(b) < 2 {
		return nil
	}
	var x, y []float64
	same := len(a) == len(b)
	for _, s := range sortedSeeds(a) {
		x = append(x, a[s])
		_, ok := b[s]
		same = same && ok
	}
	for _, s := range sortedSeeds(b) {
		y = append(y, b[s])
	}
	t := Welch(x, y)
	if same {
		t = Paired(x, y)
	}
	return &t
}

func sortedSeeds(m map[int64]float64) []int64 {
	list := make([]int64, 0, len(m))
	for s := range m {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// Paired is Student's test of the differences x[i]-y[i], of which there are at least
// two, with len(x)-1 degrees of freedom.
func Paired(x, y []float64) Test {
	d := make([]float64, len(x))
	for i := range d {
		d[i] = x[i] - y[i]
	}
	s := Summarise(d)
	return test("paired", s.Mean, s.SD/math.Sqrt(float64(s.N)), float64(s.N-1))
}

// Welch is the test of two samples with variances of their own and at least two values
// each; its degrees of freedom are Welch and Satterthwaite's.
func Welch(x, y []float64) Test {
	a, b := Summarise(x), Summarise(y)
	va, vb := a.SD*a.SD/float64(a.N), b.SD*b.SD/float64(b.N)
	df := (va + vb) * (va + vb) / (va*va/float64(a.N-1) + vb*vb/float64(b.N-1))
	if va+vb == 0 {
		df = float64(a.N + b.N - 2)
	}
	return test("welch", a.Mean-b.Mean, math.Sqrt(va+vb), df)
}

// test looks up the difference of means over its standard error. Where the error is 0
// only equal means are not told apart.
func test(kind string, diff, se, df float64) Test {
	t := Test{Kind: kind, T: diff / se, DF: df}
	switch {
	case diff == 0:
		t.T, t.P = 0, 1
	case se > 0:
		t.P = 2 * distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-math.Abs(t.T))
	}
	return t
}

// HolmAdjust returns p-values corrected for their number (Holm 1979): the smallest times n, the
// next times n-1, and so on, each at least the one before and at most 1. Where all true hypotheses
// are taken together, one is rejected wrongly at a level with at most that probability.
func HolmAdjust(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, last := make([]float64, len(p)), 0.0
	for rank, i := range order {
		last = max(last, min(1, p[i]*float64(len(p)-rank)))
		out[i] = last
	}
	return out
}

// Holm is the correction of HolmAdjust.
const Holm = "holm"

// holm corrects the p of the differences to the baseline, those of a metric in all tables together. A run that
// stands in several places is one comparison.
func (r *Results) holm() {
	for j, c := range r.Columns {
		places := map[[2]string]int{} // of the p of two runs
		var tests []*Test
		var at []int // place of the p of a test
		var p []float64
		for _, t := range r.Tables {
			for _, l := range t.Lines {
				cells := l.Cells
				if t.Column == nil {
					cells = cells[j : j+1]
				} else if t.Column.Metric != c.Metric {
					continue
				}
				for _, cell := range cells {
					if cell.ToBaseline == nil {
						continue
					}
					k, again := places[cell.compared]
					if !again {
						k = len(p)
						places[cell.compared], p = k, append(p, cell.ToBaseline.P)
					}
					tests, at = append(tests, cell.ToBaseline), append(at, k)
				}
			}
		}
		adjusted := HolmAdjust(p)
		for i, t := range tests {
			t.Holm = &adjusted[at[i]]
		}
	}
}
