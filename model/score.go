package model

import (
	"math"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// metricForm is the form of the learned metric of objective.gssf.
func metricForm(cfg config.Config) encoders.Metric {
	space, _ := cfg.Model.Head.Space()
	return cfg.Objective.GSSF.Of(space)
}

// PairScore is the score by which stored features of images and texts are compared, that
// of eval.score with the parameters as they are now. A model that compares tokens has none:
// the error is ErrNoFeatures.
func (m *Model) PairScore() (scoring.Score, error) {
	if m.design.interaction != nil {
		return scoring.Score{Space: m.design.space}, ErrNoFeatures
	}
	return StoredScore(m.cfg, m.values)
}

// Metric returns the learned metric of objective.gssf as stored features are compared by it, nil without one: sparse
// and low_rank are dense.
func (m *Model) Metric() (*scoring.Metric, error) {
	return storedMetric(metricForm(m.cfg), encoders.SimilaritySite, m.values)
}

// values are those of a parameter, nil where there is none.
func (m *Model) values(name string, shape ...int) ([]float32, error) {
	q, ok, err := m.params.stored(name, shape...)
	if !ok || err != nil {
		return nil, err
	}
	return m.params.Value(q), nil
}

// StoredScore is the score by which features of a model are compared, see Model.PairScore, for parameters that read
// gives by their names, nil where there is none.
func StoredScore(cfg config.Config, read func(name string, shape ...int) ([]float32, error)) (x scoring.Score,
	err error) {
	if x.Space, err = cfg.Model.Head.Space(); err != nil {
		return x, err
	}
	for _, t := range cfg.EvalTerms() {
		term := scoring.Term{Kind: t.Kind, Weight: float32(t.Weight)}
		if t.Kind == scoring.GSSF {
			if term.Metric, err = storedMetric(metricForm(cfg), encoders.SimilaritySite, read); err != nil {
				return x, err
			}
			if term.Metric == nil {
				term.Metric = &scoring.Metric{Form: encoders.MetricCosine}
			}
		}
		x.Terms = append(x.Terms, term)
	}
	return x, nil
}

// storedMetric is the metric of a site with its parameters, nil without some.
func storedMetric(form encoders.Metric, site string,
	read func(name string, shape ...int) ([]float32, error)) (*scoring.Metric, error) {
	var values [][]float32
	for _, x := range form.Params(site) {
		v, err := read(x.Name, x.Shape...)
		if v == nil || err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, nil
	}
	m := &scoring.Metric{Form: form.Form, Blocks: form.Blocks, Weight: values[0]}
	switch form.Form {
	case encoders.MetricMLP:
		m.Weight, m.Net = nil, &scoring.Network{Product: values[0], Difference: values[1], Bias: values[2],
			Out: values[3]}
	case encoders.MetricSparse:
		m.Form = encoders.MetricDense
	case encoders.MetricLowRank:
		m.Form, m.Weight = encoders.MetricDense, leftRight(values[0], values[len(values)-1], form.Dim)
	}
	return m, nil
}

// leftRight returns L^T R (c, c) of L and R (r, c).
func leftRight(left, right []float32, c int) []float32 {
	w := make([]float32, c*c)
	for at := 0; at < len(left); at += c {
		for i, v := range left[at : at+c] {
			vector.Axpy(w[i*c:(i+1)*c], v, right[at:at+c])
		}
	}
	return w
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
