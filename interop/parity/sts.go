package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/eval"
)

// stsPairs are the pairs of the parts of a made-up task of sentence similarity.
var stsPairs = []int{60, 150, 90}

// sts adds similarities of pairs of sentences with scores of people, some of them equal, and their correlations.
func (p *parity) sts() error {
	r := rand.New(rand.NewPCG(17, 0))
	var similarities, scores []float32
	var x, y []float64
	var names []string
	var ends []int
	for k, n := range stsPairs {
		for range n {
			s := float32(r.Float64())
			score := float32(int(10*s+2*float32(r.NormFloat64()))) / 2
			similarities, scores = append(similarities, s), append(scores, score)
			x, y = append(x, float64(s)), append(y, float64(score))
		}
		names, ends = append(names, fmt.Sprint(k)), append(ends, len(x))
	}
	p.add("sts/similarities", []int{len(x)}, similarities)
	p.add("sts/scores", []int{len(x)}, scores)
	s := eval.MeasureSTS(x, y, names, ends)
	add := func(name string, c eval.Correlation) {
		p.meta["recalls"] += fmt.Sprintf("%s_spearman=%.2f %s_pearson=%.2f ", name, 100*c.Spearman, name, 100*c.Pearson)
	}
	add("all", s.All)
	add("mean", s.Mean)
	add("wmean", s.Weighted)
	for _, part := range s.Parts {
		add("part"+part.Name, part.Correlation)
	}
	p.meta["parts"] = fmt.Sprint(stsPairs)
	return nil
}
