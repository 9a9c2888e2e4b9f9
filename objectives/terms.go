package objectives

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// ScoreKinds are the kinds of scores of pairs. That of a queue alone, the geodesic, is the last.
var ScoreKinds = []string{
	string(scoring.Cosine), string(scoring.Inner), string(scoring.L2), string(scoring.Angle), string(scoring.GSSF), string(scoring.Geodesic),
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

// PairTerms are those of the score of the contrast that a pair has without the queue: all but the geodesic. Where that leaves none
// they are the cosine, or in a Euclidean space the distance, which is the geodesic's own measure of near points.
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

// NegativeTerms are those of the score that negatives of matching are drawn by, nil for that of the contrast, and without matching.
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
