package objectives

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// ITC is image-text contrast.
//
// It is the contrast of both sides against the teacher's features and the queue (MomentumContrast), and the one within
// the batch with gradient to both sides (InBatchContrast). The score of the latter is the step's PairTerms. Of images
// alone the former is that of two views (ViewContrast), or SwAV's.
type ITC struct {
	// of the contrast against momentum features and the queue
	Weight float64 `toml:"weight" max:"1000000"`
	// how an image and a text are compared: cosine (on Ob and Multi the sum of the cosines of their spheres) | inner
	// (product) | l2 (minus the distance) | angle (minus the oblique geodesic distance, on a sphere the angle) | gssf
	// (the learned metric of objective.gssf) | geodesic (through the graph of objective.geodesic, in the contrast with
	// the queue alone)
	Score string `toml:"score" when:"score"`
	// a weighted sum instead of score, such as [{kind = "geodesic", weight = 0.5}, {kind = "gssf", weight = 0.5}];
	// kinds are those of score
	Scores Terms `toml:"scores" when:"score"`
	// behind the teacher's soft targets: same (as score) or one of its kinds
	TargetScore string `toml:"target_score" when:"weight>0 and objective.distill.alpha>0"`
	// of the in-batch contrast with gradient to both sides; a model from random weights needs it
	InBatchWeight float64 `toml:"in_batch_weight" max:"1000000"`
	// pair (only the own pair) | id (all with the same image id)
	Positives string `toml:"positives" when:"captions"`
	// initial value, by which scores are divided. A configuration that sets none, with m spheres in the head and a score
	// that sums their cosines, starts with m times as much, and so does temperature_max
	Temperature float64 `toml:"temperature" when:"temperature"`
	// the temperature is clamped to at least this; 0, with log_temperature: 0.01 x spheres of the head, CLIP's cap of
	// the scale, 100/m: an initial temperature below that needs a least one of its own
	TemperatureMin float64 `toml:"temperature_min" when:"temperature" max:"1000000"`
	// the temperature is clamped to at most this
	TemperatureMax float64 `toml:"temperature_max" when:"temperature" max:"1000000"`
	// train the temperature with the other parameters
	LearnTemperature bool `toml:"learn_temperature" when:"contrast"`
	// the parameter is the logarithm of the scale 1/temperature, as in CLIP, and not the temperature, as in ALBEF
	LogTemperature bool `toml:"log_temperature" when:"temperature" fixed:"model"`
}

var _ Preparer = (*ITC)(nil)

// Defaults implements section.Defaulter.
func (l *ITC) Defaults() {
	*l = ITC{Weight: 1, Score: "cosine", TargetScore: "same", Positives: "pair", Temperature: 0.07,
		TemperatureMin: 0.001, TemperatureMax: 0.5, LearnTemperature: true}
}

// On implements section.Switched.
func (l *ITC) On() bool { return l.Weight > 0 || l.InBatchWeight > 0 }

// Switches implements section.Switcher: its score and temperature are those of other losses too.
func (*ITC) Switches() []string { return nil }

// Gives implements section.Giver.
func (l *ITC) Gives() []section.Fact {
	list := []section.Fact{section.PairScores, section.Temperature, section.Contrast, section.BatchImages,
		section.Leading}
	if l.InBatchWeight > 0 {
		list = append(list, section.InBatch)
	}
	if l.Weight > 0 {
		list = append(list, section.Vectors, section.PastFeatures, section.Soft, section.TeacherFeatures,
			section.TeacherImages)
	}
	return list
}

// Derives implements section.Deriver.
func (l *ITC) Derives(v *section.View) []section.Fact {
	if l.InBatchWeight > 0 || v.Has(section.Captions) {
		return []section.Fact{section.Targets}
	}
	return nil
}

// Check implements section.Checked.
func (l *ITC) Check(k *section.Checker) {
	k.NotNegative("weight", "in_batch_weight")
	k.Require("weight", l.Weight == 0 || !lacksTeacher(k), "must be 0 without momentum", needsTeacher+",",
		"or use objective.itc.in_batch_weight")
	k.OneOf("positives", "pair", "id")
	l.checkScores(k)
	l.checkTemperature(k)
	system := k.Named()
	none := func(weight, pairs, positives string) {
		k.Require("weight", l.Weight == 0, "must be 0", system+" "+weight)
		k.Require("in_batch_weight", l.InBatchWeight == 0, "must be 0", system+" "+pairs)
		k.Require("positives", positives == "" || l.Positives == "pair", `must be "pair"`, system+" "+positives)
	}
	switch {
	case k.Has(section.Captions):
	case k.Has(section.Identities):
		none("is trained by objective.triplet.weight and objective.softmax.weight", "compares no pairs", "")
		k.Require(l.ScorePath(), !ScoreTerms(k).Has(scoring.Geodesic), "must not be geodesic", system+" has no queue")
	case k.Has(section.Classes):
		none("is trained by objective.classes.weight", "compares no pairs", "compares no pairs")
	case k.Has(section.Sentences):
		none("compares no images with texts", "compares no images with texts", "knows a sentence by its text alone")
	default:
		k.Require("positives", l.Positives == "pair", `must be "pair"`, system+" knows an image by its views alone")
		for _, t := range ScoreTerms(k) {
			k.Require(l.ScorePath(), t.Kind == scoring.Cosine || t.Kind == scoring.Geodesic,
				"must be cosine or geodesic", system+" has no other")
		}
		k.Require("weight", l.Weight > 0, "must be > 0", "it is the loss of "+system)
		k.Require("in_batch_weight", l.InBatchWeight == 0 || k.Has(section.Momentum), "must be 0",
			system+" compares no pairs")
	}
}

// checkTemperature checks the range of the temperature.
func (l *ITC) checkTemperature(k *section.Checker) {
	k.Positive("temperature", "temperature_max")
	k.Require("temperature_min", l.TemperatureMin > 0 || l.LogTemperature && l.TemperatureMin == 0, "must be > 0",
		"or 0 with objective.itc.log_temperature, which caps the scale at 100 for each sphere")
	s, _ := headSpace(k)
	least := l.LeastTemperature(s)
	k.Require("temperature_max", l.TemperatureMax >= least, "must be at least objective.itc.temperature_min")
	k.Require("temperature", l.Temperature >= least && l.Temperature <= l.TemperatureMax,
		"must lie between objective.itc.temperature_min and temperature_max")
}

// LeastTemperature returns the least temperature of the contrast of features of a space: that of the configuration, or
// m/100 on m spheres, by which the scale 1/temperature is at most 100/m (clip-mtob).
func (l *ITC) LeastTemperature(s space.Space) float64 {
	if l.TemperatureMin > 0 {
		return l.TemperatureMin
	}
	return float64(s.Spheres) / 100
}

// ScorePath is the key that gives the score of the contrast.
func (l *ITC) ScorePath() string {
	if len(l.Scores) > 0 {
		return "objective.itc.scores"
	}
	return "objective.itc.score"
}

// checkScores checks the score of the contrast against the space of the head.
func (l *ITC) checkScores(k *section.Checker) {
	k.OneOf("score", ScoreKinds...)
	k.OneOf("target_score", append([]string{"same"}, ScoreKinds...)...)
	l.checkTerms(k)
	s, err := headSpace(k)
	if err != nil || !s.Euclid {
		return // a problem is reported with the head
	}
	for _, path := range []string{"objective.itc.score", "objective.itc.scores", "objective.itc.target_score",
		"objective.itm.negatives", "eval.score"} {
		terms := l.Scores
		if kind, one := k.Value(path).(string); one {
			terms = KindTerms(k, kind)
		}
		if path == "objective.itc.score" && len(l.Scores) > 0 {
			continue
		}
		for _, kind := range []scoring.Kind{scoring.Cosine, scoring.Angle} {
			k.Require(path, !terms.Has(kind),
				fmt.Sprintf("%s needs unit vectors, which model.head.topology \"euclid\" lacks", kind),
				`use inner, l2, gssf or geodesic`)
		}
	}
}

// checkTerms checks the weights of objective.itc.scores.
func (l *ITC) checkTerms(k *section.Checker) {
	const key = "scores"
	sum := 0.0
	for i, t := range l.Scores {
		at := fmt.Sprintf("item %d: ", i+1)
		k.Require(key, slices.Contains(ScoreKinds, string(t.Kind)),
			at+"kind must be one of "+strings.Join(ScoreKinds, ", "))
		k.Require(key, t.Weight >= 0, at+"weight must be >= 0", "leave the term out, or give it a weight above 0")
		k.Require(key, t.Weight <= 1e6, at+"weight must be at most 1000000")
		k.Require(key, !(t.Weight > 0 && t.Weight < 1e-6), at+"weight must be 0 or at least 0.000001",
			"leave the term out, or give it a larger weight")
		k.Require(key, !l.Scores[:i].Has(t.Kind), at+string(t.Kind)+" is there twice", "add the weights")
		sum += t.Weight
	}
	if len(l.Scores) == 0 {
		return
	}
	k.Require(key, sum > 0, "at least one weight must be > 0", `write [{kind = "cosine", weight = 1}]`)
	k.Require("score", l.Score == "cosine", "must not be set together with objective.itc.scores", "give it as a term")
	k.Require("objective.geodesic.mix", section.Of[Geodesic](k).Mix == 1, "must be 1 with objective.itc.scores",
		"write the shares as weights")
}

// Prepare implements Preparer.
func (l *ITC) Prepare(s *Step) {
	switch {
	case l.Weight == 0 || s.Has(section.Prototypes):
	case s.Has(section.Views): // the first passes the encoder, the second its twin
		s.Reads.Online.Image.Features, s.Reads.Teacher.Text.Features = true, true
	case section.Of[TCL](s.Config).Local:
		s.Reads.Teacher.Image.Tokens, s.Reads.Teacher.Text.Tokens = true, true
	}
	if l.InBatchWeight > 0 {
		s.ReadPairs()
	}
}

// Build implements Loss.
func (l *ITC) Build(s *Step) (parts []Part) {
	switch {
	case l.Weight == 0 || s.Has(section.Prototypes):
	case s.Has(section.Views):
		parts = l.views(s)
	default:
		parts = l.againstTeacher(s)
	}
	if l.InBatchWeight > 0 {
		p := s.Part("itc_in_batch", l.InBatchWeight, s.within().Loss)
		p.Chance = math.Log(float64(s.All()))
		parts = append(parts, p)
	}
	return parts
}

// againstTeacher is the contrast against the teacher's features and the queue.
func (l *ITC) againstTeacher(s *Step) []Part {
	needTeacher(s, "itc")
	banks, weigh := s.Banks(), section.Of[Geodesic](s.Config).Weigh
	c := MomentumContrast{
		Image: s.Online.Image.Features, Text: s.Online.Text.Features,
		ImageM: s.Teacher.Image.Features, TextM: s.Teacher.Text.Features,
		ImageBank: banks.Image, TextBank: banks.Text, Alpha: s.Alpha(),
		Positives: s.targets(banks.Positives, banks.Own), Score: s.Scores.Score(ScoreTerms(s.Config), false),
		Target:     s.Scores.Score(TargetTerms(s.Config), true),
		WeighPaths: s.Scores.Paths,
	}
	if s.NegativeTerms != nil {
		by := s.Scores.Score(s.NegativeTerms, false)
		c.Negatives = &by
	}
	if weigh > 0 {
		c.Weigh = s.Floats("weight of the teacher's scores", func(_ *feed.Step, dst []float32) error {
			if dst[0] = 0; banks.GraphActive() {
				dst[0] = -float32(weigh)
			}
			return nil
		})
	}
	parts := section.Of[TCL](s.Config).parts(s, c)
	for _, p := range parts {
		c.Terms = append(c.Terms, p.Node)
	}
	built := c.Build()
	s.offer(built)
	return append(parts, s.Part("itc", l.Weight, built.Loss))
}
