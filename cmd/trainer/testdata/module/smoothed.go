package main

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
)

// Smoothed is the contrast within the batch with label smoothing (Szegedy et al. 2016, section 7), the mean of both
// directions:
//
//	L = mean_i -sum_j y_ij log softmax(s_i / tau)_j,  y_i = (1-Smoothing) [j = i] + Smoothing/B
type Smoothed struct {
	section.Weighted
	// share of the target that is spread over the batch
	Smoothing float64 `toml:"smoothing"`
}

// Defaults implements section.Defaulter.
func (l *Smoothed) Defaults() { *l = Smoothed{Smoothing: 0.1} }

// Needs implements section.Needer.
func (*Smoothed) Needs() []section.Fact { return []section.Fact{section.Captions, section.Steps} }

// Gives implements section.Giver: it reads the scores of pairs and the temperature.
func (*Smoothed) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.Temperature, section.Contrast, section.BatchImages}
}

// Check implements section.Checked.
func (l *Smoothed) Check(k *section.Checker) { k.BelowOne("smoothing") }

// Prepare implements objectives.Preparer.
func (l *Smoothed) Prepare(s *objectives.Step) { s.ReadPairs() }

// Build implements objectives.Loss.
func (l *Smoothed) Build(s *objectives.Step) []objectives.Part {
	s = s.Whole()
	logits := s.Scores.Divisor().Divide(s.PairScores()) // (B, B)
	share := s.SharedFloats("smoothed share", []float32{float32(l.Smoothing)})
	rows := contrast.CrossEntropyArgs{Logits: logits, Labels: s.Own(), Uniform: share}
	columns := rows
	columns.Logits = layout.Transpose(logits)
	part := s.Part("smoothed", l.Weight, objectives.Mean(contrast.CrossEntropy(rows), contrast.CrossEntropy(columns)))
	part.Chance = math.Log(float64(s.Rows))
	return []objectives.Part{part}
}
