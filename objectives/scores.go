package objectives

import (
	"fmt"
	"math"
	"slices"

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

// NewScores are the scores of a configuration over features of a space, with parameters of the scope on, and of the
// scope momentum for the teacher.
func NewScores(v section.Viewer, s space.Space, on, momentum encoders.Scope) Scores {
	i, g := section.Of[ITC](v), section.Of[Geodesic](v)
	return Scores{
		Params: on, MomentumParams: momentum, Space: s,
		Temperature: i.Temperature, Log: i.LogTemperature, Learn: i.LearnTemperature,
		GeodesicTemperature: g.Temperature, Metric: section.Of[GSSF](v).Of(s),
		Paths: ParsePaths(g.Gradient, g.Entries, g.Softness, g.Limit(s), g.DirectPositives),
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

// ScoreKinds are the kinds of scores of pairs. That of a queue alone, the geodesic, is the last.
var ScoreKinds = []string{
	string(scoring.Cosine), string(scoring.Inner), string(scoring.L2), string(scoring.Angle), string(scoring.GSSF),
	string(scoring.Geodesic),
}

// Terms are the terms of a score before it has parameters.
type Terms []ScoreTerm

// ScoreTerm is a term of a score, and of objective.itc.scores.
type ScoreTerm struct {
	Kind   scoring.Kind `toml:"kind"`
	Weight float64      `toml:"weight"`
}

// String writes the term as it stands in a file.
func (t ScoreTerm) String() string {
	return fmt.Sprintf("{kind = %q, weight = %v}", string(t.Kind), t.Weight)
}

// Has says whether there is a term of a kind.
func (t Terms) Has(kind scoring.Kind) bool {
	return slices.ContainsFunc(t, func(x ScoreTerm) bool { return x.Kind == kind })
}

// KindTerms are those of a score that one kind names: a geodesic has objective.geodesic.mix of the cosine.
func KindTerms(v section.Viewer, kind string) Terms {
	if mix := section.Of[Geodesic](v).Mix; scoring.Kind(kind) == scoring.Geodesic && mix != 1 {
		return Terms{{scoring.Geodesic, mix}, {scoring.Cosine, 1 - mix}}
	}
	return Terms{{scoring.Kind(kind), 1}}
}

// ScoreTerms are those of the score of the contrast, without those of weight 0.
func ScoreTerms(v section.Viewer) Terms {
	l := section.Of[ITC](v)
	if len(l.Scores) > 0 {
		return slices.DeleteFunc(slices.Clone(l.Scores), func(t ScoreTerm) bool { return t.Weight == 0 })
	}
	return KindTerms(v, l.Score)
}

// TargetTerms are those of the score behind the teacher's soft targets.
func TargetTerms(v section.Viewer) Terms {
	if kind := section.Of[ITC](v).TargetScore; kind != "same" {
		return KindTerms(v, kind)
	}
	return ScoreTerms(v)
}

// PairTerms are those of the score of the contrast that a pair has without the queue: all but the geodesic. Where that
// leaves none they are the cosine, or in a Euclidean space the distance, which is the geodesic's own measure of near
// points.
func PairTerms(v section.Viewer, s space.Space) Terms {
	terms := slices.DeleteFunc(ScoreTerms(v), func(t ScoreTerm) bool { return t.Kind == scoring.Geodesic })
	switch {
	case len(terms) > 0:
		return terms
	case s.Euclid:
		return Terms{{scoring.L2, 1}}
	}
	return Terms{{scoring.Cosine, 1}}
}

// NegativeTerms are those of the score that negatives of matching are drawn by, nil for that of the contrast, and
// without matching.
func NegativeTerms(v section.Viewer) Terms {
	if l := section.Of[ITM](v); l.On() && l.Negatives != "score" {
		return Terms{{scoring.Kind(l.Negatives), 1}}
	}
	return nil
}

// usedTerms are the terms of all scores that losses compute. A kind may be there more than once.
func usedTerms(v *section.View) (used Terms) {
	if v.Has(section.PairScores) {
		used = append(used, ScoreTerms(v)...)
		if section.Of[Distill](v).Alpha > 0 && section.Of[ITC](v).Weight > 0 {
			used = append(used, TargetTerms(v)...)
		}
	}
	return append(used, NegativeTerms(v)...)
}
