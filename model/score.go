package model

import (
	"math"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Names of the parameters of scores.
const (
	temperatureName         = "temperature"
	logScaleName            = "logit_scale"          // with objective.itc.log_temperature
	geodesicTemperatureName = "geodesic/temperature" // with objective.geodesic.temperature
	metricName              = "gssf/weight"
)

// scorer makes the scores of a configuration with parameters of a scope.
type scorer struct {
	cfg config.Config
	on  encoders.Scope // of what is trained
	mom encoders.Scope // of the momentum twins, of which the teacher's metric is one
}

// temperature is the contrast's temperature.
func (s scorer) temperature() objectives.Temperature {
	t := s.cfg.Objective.ITC.Temperature
	if s.cfg.Objective.ITC.LogTemperature {
		return objectives.Temperature{Node: s.on.Param(logScaleName, encoders.Const(float32(-math.Log(t)))), Log: true}
	}
	return objectives.Temperature{Node: s.on.Param(temperatureName, encoders.Const(float32(t)))}
}

// score is the score of some terms. That of the teacher has the momentum twin of the
// learned metric.
func (s scorer) score(terms []config.ScoreTerm, teacher bool) objectives.Score {
	space, _ := s.cfg.Model.Head.Space()
	x := objectives.Score{Spheres: space.Spheres, Temperature: s.temperature()}
	for _, t := range terms {
		term := objectives.Term{Kind: scoring.Kind(t.Kind), Weight: float32(t.Weight)}
		switch t.Kind {
		case config.ScoreGSSF:
			p := s.on
			if teacher {
				p = s.mom
			}
			term.Metric = s.metric(p)
		case config.ScoreGeodesic:
			term.Paths = s.paths()
			if own := s.cfg.Objective.Geodesic.Temperature; own > 0 {
				x.Temperature = objectives.Temperature{Node: s.on.Param(geodesicTemperatureName, encoders.Const(float32(own)))}
			}
		}
		x.Terms = append(x.Terms, term)
	}
	return x
}

// paths says how geodesics are measured.
func (s scorer) paths() objectives.Paths {
	g := s.cfg.Objective.Geodesic
	space, _ := s.cfg.Model.Head.Space()
	return objectives.ParsePaths(g.Gradient, g.Entries, g.Softness, geodesicLimit(g, space), g.DirectPositives)
}

// local is how points near each other are measured, which a graph takes from the head.
func (s scorer) local() space.Space {
	space, _ := s.cfg.Model.Head.Space()
	return space
}

// metric is the learned metric of objective.gssf, nil for that of the cosine. It starts as
// the identity.
func (s scorer) metric(p encoders.Scope) *gorgonia.Node {
	form, dim := s.cfg.Objective.GSSF.Form, s.cfg.Model.Head.Dim
	blocks := s.cfg.MetricBlocks()
	shape := map[string][]int{"diag": {dim}, "block_diag": {blocks, dim / blocks, dim / blocks}, "dense": {dim, dim}}[form]
	if shape == nil {
		return nil
	}
	return p.Param(metricName, encoders.Values(scoring.Identity(form, blocks, dim)), shape...)
}

// pairScore is the score by which stored features of images and texts are compared, with
// the parameters as they are now.
func pairScore(cfg config.Config, p *Params) scoring.Score {
	space, _ := cfg.Model.Head.Space()
	x := scoring.Score{Space: space}
	for _, t := range cfg.EvalTerms() {
		term := scoring.Term{Kind: scoring.Kind(t.Kind), Weight: float32(t.Weight)}
		if t.Kind == config.ScoreGSSF {
			term.Metric = &scoring.Metric{Form: "cosine"}
			if q, ok := p.Get(metricName); ok {
				term.Metric = &scoring.Metric{Form: cfg.Objective.GSSF.Form, Blocks: cfg.MetricBlocks(), Weight: p.Value(q)}
			}
		}
		x.Terms = append(x.Terms, term)
	}
	return x
}

// temperature returns the value of the contrast's temperature, 0 where the model has none.
func temperature(p *Params) float64 {
	if q, ok := p.Get(logScaleName); ok {
		return math.Exp(-float64(p.Value(q)[0]))
	}
	if q, ok := p.Get(temperatureName); ok {
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
	clamp(temperatureName, least, most)
	clamp(geodesicTemperatureName, least, most)
	clamp(logScaleName, float32(-math.Log(float64(most))), float32(-math.Log(float64(least))))
}

// frozenTemperature returns the temperatures' names where they are not trained.
func frozenTemperature(c config.Config) []string {
	if c.Objective.ITC.LearnTemperature {
		return nil
	}
	return []string{temperatureName, geodesicTemperatureName, logScaleName}
}
