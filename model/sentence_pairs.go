package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// sentencePairs is fine-tuning of a text tower on pairs of sentences: that of simcse without a head of its own, and in training
// with the types of tokens where both sentences are one text. A sentence alone is encoded as before, all of the first type.
func sentencePairs(cfg config.Config, o Options, space space.Space) design {
	t := textTower(cfg, o, space)
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: t, head: encoders.Projection{Space: space, Identity: true}}
	if cfg.JointPairs() {
		t.Segments = true
		one.inTraining = t
	}
	return design{image: one, text: one, views: true}
}

// newSentencePairs is the loss over pairs of sentences.
func newSentencePairs(cfg config.Config) objectives.SentencePairs {
	c, task := cfg.Objective.SentencePairs, cfg.Data.SentencePairs
	l := objectives.SentencePairs{Weight: c.Weight, Joint: cfg.JointPairs(), Head: encoders.PairHead{Classes: task.Classes(), Dropout: c.Dropout}}
	l.Low, l.High = task.Scale()
	return l
}
