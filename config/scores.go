package config

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of pair scores.
const (
	ScoreCosine   = "cosine"
	ScoreInner    = "inner"
	ScoreL2       = "l2"
	ScoreAngle    = "angle"
	ScoreGSSF     = "gssf"
	ScoreGeodesic = "geodesic"
)

var scoreKinds = []string{ScoreCosine, ScoreInner, ScoreL2, ScoreAngle, ScoreGSSF, ScoreGeodesic}

// String writes the term as it stands in a file.
func (t ScoreTerm) String() string { return fmt.Sprintf("{kind = %q, weight = %v}", t.Kind, t.Weight) }

// ScoreTerms returns the terms of the score of the contrast, those of weight 0 left out.
func (o Objective) ScoreTerms() []ScoreTerm {
	switch mix := o.Geodesic.Mix; {
	case len(o.ITC.Scores) > 0:
		return slices.DeleteFunc(slices.Clone(o.ITC.Scores), func(t ScoreTerm) bool { return t.Weight == 0 })
	case o.ITC.Score == ScoreGeodesic && mix != 1:
		return []ScoreTerm{{ScoreGeodesic, mix}, {ScoreCosine, 1 - mix}}
	}
	return []ScoreTerm{{o.ITC.Score, 1}}
}

// scorePath is the key that gives the score of the contrast.
func (o Objective) scorePath() string {
	if len(o.ITC.Scores) > 0 {
		return "objective.itc.scores"
	}
	return "objective.itc.score"
}

// TargetTerms returns the terms of the score behind the teacher's soft targets.
func (o Objective) TargetTerms() []ScoreTerm {
	if o.ITC.TargetScore == "same" {
		return o.ScoreTerms()
	}
	return o.terms(o.ITC.TargetScore)
}

// PairTerms returns the terms of the score of the contrast that a pair has without the
// queue: all but the geodesic. Where that leaves none they are the cosine, or in a
// Euclidean space the distance, which is the geodesic's own measure of near points.
func (c Config) PairTerms() []ScoreTerm {
	terms := slices.DeleteFunc(c.Objective.ScoreTerms(), func(t ScoreTerm) bool { return t.Kind == ScoreGeodesic })
	if len(terms) > 0 {
		return terms
	}
	if space, err := c.Model.Head.Space(); err == nil && space.Euclid {
		return []ScoreTerm{{ScoreL2, 1}}
	}
	return []ScoreTerm{{ScoreCosine, 1}}
}

// EvalTerms returns the terms of the score by which retrieval is evaluated.
func (c Config) EvalTerms() []ScoreTerm {
	if c.Model.TextsOnly() { // whatever the score of pairs
		return []ScoreTerm{{ScoreCosine, 1}}
	}
	if c.Eval.Score == "train" {
		return c.PairTerms()
	}
	return c.Objective.terms(c.Eval.Score)
}

// NegativeTerms returns the terms of the score that negatives of matching are drawn by,
// nil for that of the contrast, and without matching.
func (o Objective) NegativeTerms() []ScoreTerm {
	if o.ITM.Negatives == "score" || o.ITM.Weight == 0 {
		return nil
	}
	return []ScoreTerm{{o.ITM.Negatives, 1}}
}

// terms returns the terms of a score that one kind names, the mix of the geodesic included.
func (o Objective) terms(kind string) []ScoreTerm {
	o.ITC.Score, o.ITC.Scores = kind, nil
	return o.ScoreTerms()
}

func hasKind(terms []ScoreTerm, kind string) bool {
	return slices.ContainsFunc(terms, func(t ScoreTerm) bool { return t.Kind == kind })
}

// usedTerms are the terms of all scores that the objective computes. A kind may be there
// more than once.
func (o Objective) usedTerms() []ScoreTerm {
	var used []ScoreTerm
	if o.ITC.Weight > 0 || o.comparesBatch() || o.KLOT.Weight > 0 {
		used = append(used, o.ScoreTerms()...)
		if o.Distill.Alpha > 0 && o.ITC.Weight > 0 {
			used = append(used, o.TargetTerms()...)
		}
	}
	return append(used, o.NegativeTerms()...)
}

// scores checks the score of the contrast against the space of the head.
func (k *checker) scores(c Config) {
	o := c.Objective
	k.OneOf("objective.itc.score", scoreKinds...)
	k.OneOf("objective.itc.target_score", append([]string{"same"}, scoreKinds...)...)
	k.terms(o)
	space, err := c.Model.Head.Space()
	if err != nil {
		return // reported with the head
	}
	for _, x := range []struct {
		path  string
		terms []ScoreTerm
	}{
		{"objective.itc.score", o.terms(o.ITC.Score)}, {"objective.itc.scores", o.ITC.Scores}, {"objective.itc.target_score", o.terms(o.ITC.TargetScore)},
		{"objective.itm.negatives", o.terms(o.ITM.Negatives)}, {"eval.score", o.terms(c.Eval.Score)},
	} {
		if x.path == "objective.itc.score" && len(o.ITC.Scores) > 0 {
			continue
		}
		for _, kind := range []string{ScoreCosine, ScoreAngle} {
			k.Require(x.path, !space.Euclid || !hasKind(x.terms, kind), fmt.Sprintf("%s needs unit vectors, which model.head.topology \"euclid\" has not", kind),
				`use inner, l2, gssf or geodesic`)
		}
	}
}

// terms checks the weights of objective.itc.scores.
func (k *checker) terms(o Objective) {
	const path = "objective.itc.scores"
	sum := 0.0
	for i, t := range o.ITC.Scores {
		at := fmt.Sprintf("item %d: ", i+1)
		k.Require(path, slices.Contains(scoreKinds, t.Kind), at+"kind must be one of "+strings.Join(scoreKinds, ", "))
		k.Require(path, t.Weight >= 0, at+"weight must be >= 0", "leave the term out, or give it a weight above 0")
		k.Require(path, t.Weight <= 1e6, at+"weight must be at most 1000000")
		k.Require(path, !(t.Weight > 0 && t.Weight < 1e-6), at+"weight must be 0 or at least 0.000001", "leave the term out, or give it a larger weight")
		k.Require(path, !hasKind(o.ITC.Scores[:i], t.Kind), at+t.Kind+" is there twice", "add the weights")
		sum += t.Weight
	}
	if len(o.ITC.Scores) == 0 {
		return
	}
	k.Require(path, sum > 0, "at least one weight must be > 0", `write [{kind = "cosine", weight = 1}]`)
	k.Require("objective.itc.score", o.ITC.Score == Default().Objective.ITC.Score, "must not be set together with objective.itc.scores", "give it as a term")
	k.Require("objective.geodesic.mix", o.Geodesic.Mix == 1, "must be 1 with objective.itc.scores", "write the shares as weights")
}
