package align

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/rng"
)

// chooseStream names the random numbers that divide pairs into folds.
const chooseStream = "align/folds"

// Choose compares methods by cross-validation: each is fitted to all folds but one and
// ranks the pairs of that one. It returns the index of the best and the score of each, the
// mean reciprocal rank of the right partner over both directions and all folds. Methods that
// read moments share them, and the eigendecompositions of each fold.
func Choose(e *compute.Engine, p Pairs, methods []Method, folds int, seed uint64) (best int, scores []float64,
	err error) {
	if len(methods) == 0 || folds < 2 {
		return 0, nil, fmt.Errorf("align: Choose needs methods and at least 2 folds (got %d and %d)", len(methods),
			folds)
	}
	if err := p.check("cross-validation", 2*folds); err != nil {
		return 0, nil, err
	}
	order := make([]int32, p.Len())
	for i := range order {
		order[i] = int32(i)
	}
	rng.New(seed, chooseStream, 0).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	scores = make([]float64, len(methods))
	for f := range folds {
		lo, hi := f*len(order)/folds, (f+1)*len(order)/folds
		rest := append(append([]int32(nil), order[:lo]...), order[hi:]...)
		maps, err := fitAll(e, p.Select(rest), methods)
		if err != nil {
			return 0, nil, err
		}
		for i, m := range maps {
			ranks, err := Rank(e, m, p.Select(order[lo:hi]))
			if err != nil {
				return 0, nil, err
			}
			scores[i] += reciprocal(ranks) * float64(hi-lo) / float64(len(order))
		}
	}
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	return best, scores, nil
}

// fitAll fits all methods to the same pairs.
func fitAll(e *compute.Engine, p Pairs, methods []Method) ([]Map, error) {
	moments := map[Prepare]*Moments{}
	maps := make([]Map, len(methods))
	for i, method := range methods {
		mm, ok := method.(momentMethod)
		var err error
		if !ok {
			if maps[i], err = method.Fit(e, p); err != nil {
				return nil, err
			}
			continue
		}
		m := moments[mm.prepare()]
		if m == nil {
			if m, err = Measure(e, p, mm.prepare()); err != nil {
				return nil, err
			}
			moments[mm.prepare()] = m
		}
		if maps[i], err = mm.fit(e, p, m); err != nil {
			return nil, err
		}
	}
	return maps, nil
}

// reciprocal is the mean of 1/rank over both directions.
func reciprocal(r *eval.Ranks) float64 {
	var sum float64
	for _, ranks := range [][]int{r.I2T, r.T2I} {
		for _, k := range ranks {
			sum += 1 / float64(k+1)
		}
	}
	return sum / float64(len(r.I2T)+len(r.T2I))
}
