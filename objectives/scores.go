package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Names of the parameters of scores.
const (
	TemperatureName         = "temperature"
	LogScaleName            = "logit_scale"          // with Scores.Log
	GeodesicTemperatureName = "geodesic/temperature" // with Scores.GeodesicTemperature
)

// Scores makes the scores of a step, which share their parameters.
type Scores struct {
	Params, MomentumParams encoders.Scope // the learned metric of a teacher is the momentum copy

	Temperature float64 // initial value
	Log         bool    // the parameter is the logarithm of the scale 1/temperature
	Learn       bool    // the temperature is trained
	// GeodesicTemperature is the initial value of a temperature that scores with a geodesic
	// term have for themselves; 0: they share the other one.
	GeodesicTemperature float64

	Metric  encoders.Metric   // of gssf terms
	Context *encoders.Context // dropout of the learned metric, not of a teacher's; nil: none
	Paths   Paths             // of geodesic terms
	Space   space.Space       // of the features
}

// NewScores are the scores of a configuration over features of a space, with parameters of the scope on, and of the scope
// momentum for the teacher.
func NewScores(v section.Viewer, s space.Space, on, momentum encoders.Scope) Scores {
	i, g := section.Of[ITC](v), section.Of[Geodesic](v)
	return Scores{
		Params: on, MomentumParams: momentum, Space: s,
		Temperature: i.Temperature, Log: i.LogTemperature, Learn: i.LearnTemperature, GeodesicTemperature: g.Temperature,
		Metric: section.Of[GSSF](v).Of(s), Paths: ParsePaths(g.Gradient, g.Entries, g.Softness, g.Limit(s), g.DirectPositives),
	}
}

// Divisor is the temperature that scores are divided by.
func (s Scores) Divisor() Temperature {
	if s.Log {
		return Temperature{Node: s.temperature(LogScaleName, -math.Log(s.Temperature)), Log: true}
	}
	return Temperature{Node: s.temperature(TemperatureName, s.Temperature)}
}

func (s Scores) temperature(name string, start float64) *gorgonia.Node {
	p := s.Params.As(encoders.Traits{Group: encoders.GroupTemperature, Frozen: !s.Learn})
	return p.Param(name, encoders.Const(float32(start)))
}

// Score is the score of some terms. That of the teacher has the momentum copy of the
// learned metric.
func (s Scores) Score(terms Terms, teacher bool) Score {
	x := s.Bare(terms, teacher)
	x.Temperature = s.Divisor()
	if own := s.GeodesicTemperature; own > 0 && terms.Has(scoring.Geodesic) {
		x.Temperature = Temperature{Node: s.temperature(GeodesicTemperatureName, own)}
	}
	return x
}

// Bare is Score without a temperature.
func (s Scores) Bare(terms Terms, teacher bool) Score {
	x := Score{Space: s.Space}
	for _, t := range terms {
		term := Term{Kind: t.Kind, Weight: float32(t.Weight)}
		switch t.Kind {
		case scoring.GSSF:
			p, c := s.Params, s.Context
			if teacher {
				p, c = s.MomentumParams, nil
			}
			term.Metric, term.Net = s.Metric.Weights(c, p, encoders.SimilaritySite), s.Metric.Net(p)
		case scoring.Geodesic:
			term.Paths = s.Paths
		}
		x.Terms = append(x.Terms, term)
	}
	return x
}
