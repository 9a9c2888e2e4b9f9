package eval

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Correlation is how well two lists of numbers agree, from -1 to 1. Where one of them is constant nothing can be told,
// and both are 0.
type Correlation struct {
	Spearman float64 `json:"spearman"` // of the ranks; equal numbers have the mean of their ranks
	Pearson  float64 `json:"pearson"`
}

// Correlate returns the correlation of x with y, two lists of one length and of finite numbers.
func Correlate(x, y []float64) Correlation {
	return Correlation{Spearman: pearson(ranksOf(x), ranksOf(y)), Pearson: pearson(x, y)}
}

// pearson is the correlation coefficient of two lists, 0 where there is none: of a constant, which rounding may hide,
// and of no numbers.
func pearson(x, y []float64) float64 {
	r := stat.Correlation(x, y, nil)
	if math.IsNaN(r) || slices.Max(x) == slices.Min(x) || slices.Max(y) == slices.Min(y) {
		return 0
	}
	return max(-1, min(1, r)) // beyond which rounding may lie
}

// ranksOf returns the rank of each number, from 1; equal numbers share the mean of their ranks.
func ranksOf(x []float64) []float64 {
	order := descending(x)
	slices.Reverse(order)
	ranks := make([]float64, len(x))
	for first := 0; first < len(order); {
		last := first + 1
		for last < len(order) && x[order[last]] == x[order[first]] {
			last++
		}
		for _, i := range order[first:last] {
			ranks[i] = float64(first+last+1) / 2
		}
		first = last
	}
	return ranks
}

// STSPart is the correlation of a part of a task, such as a file of STS12.
type STSPart struct {
	Name  string `json:"name"`
	Pairs int    `json:"pairs"`
	Correlation
}

// STS is how well the similarities of the pairs of a task agree with the scores of people.
type STS struct {
	Parts []STSPart `json:"parts"`
	// All is the correlation over the pairs of all parts together (the "all" of Gao et al. 2021, appendix B), Mean the
	// mean of those of the parts and Weighted their mean weighted by pairs (mean and wmean of SentEval).
	All      Correlation `json:"all"`
	Mean     Correlation `json:"mean"`
	Weighted Correlation `json:"weighted"`
}

// MeasureSTS correlates similarities with scores. Part k is the pairs from ends[k-1] to below ends[k].
func MeasureSTS(similarities, scores []float64, names []string, ends []int) STS {
	s := STS{All: Correlate(similarities, scores)}
	first := 0
	for k, end := range ends {
		if end > first {
			s.Parts = append(s.Parts, STSPart{names[k], end - first,
				Correlate(similarities[first:end], scores[first:end])})
		}
		first = end
	}
	for _, p := range s.Parts {
		even, weight := 1/float64(len(s.Parts)), float64(p.Pairs)/float64(len(scores))
		s.Mean.Spearman += even * p.Spearman
		s.Mean.Pearson += even * p.Pearson
		s.Weighted.Spearman += weight * p.Spearman
		s.Weighted.Pearson += weight * p.Pearson
	}
	return s
}
