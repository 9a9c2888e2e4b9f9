package model

import (
	"math"

	"github.com/geoalign/geoalign/compute"
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
	g := cfg.Objective.GSSF
	m := encoders.Metric{
		Form: g.Form, Blocks: cfg.MetricBlocks(), Dim: cfg.Model.Head.Dim, Rank: g.LowRank(cfg.Model.Head.Dim), Symmetric: g.Symmetric, Hidden: g.Units(cfg.Model.Head.Dim),
		Dropout: g.Dropout,
	}
	if g.Decay > 0 || g.L1 > 0 {
		m.Pull = encoders.Pull{Decay: g.Decay, Identity: g.Decay > 0 && g.DecayTo != "zero", L1: g.L1}
	}
	return m
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
			m, err := p.Metric()
			if err != nil {
				return x, err
			}
			if m != nil {
				term.Metric = m
			}
		}
		x.Terms = append(x.Terms, term)
	}
	return x, nil
}

// Metric returns the learned metric of objective.gssf as stored features are compared by it, nil without one: sparse and
// low_rank are dense.
func (p *Pairs) Metric() (*scoring.Metric, error) {
	form := metricForm(p.cfg)
	var values [][]float32
	for _, x := range form.Params(encoders.SimilaritySite) {
		q, ok, err := p.params.stored(x.Name, x.Shape...)
		if !ok || err != nil {
			return nil, err
		}
		values = append(values, p.params.Value(q))
	}
	if len(values) == 0 {
		return nil, nil
	}
	return scoringMetric(p.engine, form, values), nil
}

// scoringMetric is a metric with the values of its parameters.
func scoringMetric(e *compute.Engine, form encoders.Metric, values [][]float32) *scoring.Metric {
	m := &scoring.Metric{Form: form.Form, Blocks: form.Blocks, Weight: values[0]}
	switch form.Form {
	case encoders.MetricMLP:
		m.Weight, m.Net = nil, &scoring.Network{Product: values[0], Difference: values[1], Bias: values[2], Out: values[3]}
	case encoders.MetricSparse:
		m.Form = encoders.MetricDense
	case encoders.MetricLowRank:
		left, right, c := values[0], values[len(values)-1], form.Dim
		m.Form, m.Weight = encoders.MetricDense, make([]float32, c*c)
		e.Gemm(true, false, c, c, form.Rank, 1, left, c, right, c, 0, m.Weight, c)
	}
	return m
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
