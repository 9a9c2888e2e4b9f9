package model

import (
	"math"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// newScores are the scores of a configuration over features of a space, with parameters of
// the scopes on and, of the teacher, twins.
func newScores(cfg config.Config, space space.Space, on, twins encoders.Scope) objectives.Scores {
	obj, g := cfg.Objective, cfg.Objective.Geodesic
	return objectives.Scores{
		Params: on, Twins: twins, Space: space,
		Temperature: obj.ITC.Temperature, Log: obj.ITC.LogTemperature, Learn: obj.ITC.LearnTemperature, GeodesicTemperature: g.Temperature,
		Metric: metricForm(cfg),
		Paths:  objectives.ParsePaths(g.Gradient, g.Entries, g.Softness, geodesicLimit(g, space), g.DirectPositives),
	}
}

// metricForm is the form of the learned metric of objective.gssf.
func metricForm(cfg config.Config) encoders.Metric {
	return encoders.Metric{Form: cfg.Objective.GSSF.Form, Blocks: cfg.MetricBlocks(), Dim: cfg.Model.Head.Dim}
}

// PairScore is the score by which stored features of images and texts are compared, that
// of eval.score with the parameters as they are now. A model that compares tokens has none:
// the error is ErrNoFeatures.
func (p *Pairs) PairScore() (scoring.Score, error) {
	cfg := p.cfg
	x := scoring.Score{Space: p.design.space}
	if p.design.interaction != nil {
		return x, ErrNoFeatures
	}
	for _, t := range cfg.EvalTerms() {
		term := scoring.Term{Kind: scoring.Kind(t.Kind), Weight: float32(t.Weight)}
		if t.Kind == config.ScoreGSSF {
			term.Metric = &scoring.Metric{Form: "cosine"}
			weight, ok, err := p.Metric()
			if err != nil {
				return x, err
			}
			if ok {
				term.Metric = &scoring.Metric{Form: cfg.Objective.GSSF.Form, Blocks: cfg.MetricBlocks(), Weight: weight}
			}
		}
		x.Terms = append(x.Terms, term)
	}
	return x, nil
}

// Metric returns the weights of the learned metric of objective.gssf, false without one.
func (p *Pairs) Metric() ([]float32, bool, error) {
	shape := metricForm(p.cfg).Shape()
	if shape == nil {
		return nil, false, nil
	}
	q, ok, err := p.params.stored(encoders.MetricName(encoders.SimilaritySite), shape...)
	if !ok || err != nil {
		return nil, false, err
	}
	return p.params.Value(q), true, nil
}

// temperature returns the value of the contrast's temperature, 0 where the model has none.
func temperature(p *Params) float64 {
	if q, ok := p.Get(objectives.LogScaleName); ok {
		return math.Exp(-float64(p.Value(q)[0]))
	}
	if q, ok := p.Get(objectives.TemperatureName); ok {
		return float64(p.Value(q)[0])
	}
	return 0
}

// clampTemperature keeps the temperatures in the range of the configuration.
func clampTemperature(p *Params, c config.Config) {
	least, most := float32(c.LeastTemperature()), float32(c.Objective.ITC.TemperatureMax)
	clamp := func(name string, lo, hi float32) {
		if q, ok := p.Get(name); ok {
			v := p.Value(q)
			v[0] = min(max(v[0], lo), hi)
		}
	}
	clamp(objectives.TemperatureName, least, most)
	clamp(objectives.GeodesicTemperatureName, least, most)
	clamp(objectives.LogScaleName, float32(-math.Log(float64(most))), float32(-math.Log(float64(least))))
}
