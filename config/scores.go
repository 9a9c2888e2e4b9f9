package config

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// PairTerms returns the terms of the score of the contrast that a pair has without the queue.
func (c *Config) PairTerms() objectives.Terms {
	space, _ := c.Model.Head.Space()
	return objectives.PairTerms(c.View(), space)
}

// EvalTerms returns the terms of the score by which retrieval is evaluated.
func (c *Config) EvalTerms() objectives.Terms {
	switch {
	case c.Has(section.Sentences): // whatever the score of pairs
		return objectives.Terms{{Kind: scoring.Cosine, Weight: 1}}
	case c.Eval.Score == "train":
		return c.PairTerms()
	}
	return objectives.KindTerms(c.View(), c.Eval.Score)
}

// trainMetric says how a run without a learned metric gets one, if it can.
func (c *Config) trainMetric() string {
	with := *c
	with.seen = nil
	with.Objective.ITC.Score, with.Objective.ITC.Scores = string(scoring.GSSF), nil
	if !with.Has(section.Metric) {
		return `no loss of this run compares pairs by a score: use eval.score = "train"`
	}
	return `use objective.itc.score = "gssf", or give it a term in objective.itc.scores`
}

// LeastTemperature returns the least temperature of the contrast.
func (c *Config) LeastTemperature() float64 {
	space, _ := c.Model.Head.Space()
	return c.Objective.ITC.LeastTemperature(space)
}

// sphereSum returns how many cosines the score of the contrast sums: the spheres of the head, or 1 where it has no term
// that is such a sum.
func (c *Config) sphereSum() float64 {
	terms := objectives.ScoreTerms(c.View())
	if !terms.Has(scoring.Cosine) && !terms.Has(scoring.Inner) && !terms.Has(scoring.GSSF) {
		return 1
	}
	space, err := c.Model.Head.Space()
	if err != nil {
		return 1
	}
	return float64(max(1, space.Spheres))
}
