package vqa

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/tasks"
)

// Loss is the loss of a decoder that writes the answers to a question about an image from the states of the fusion
// layers (ALBEF, Li et al. 2021, section 4): the sum over the tokens of an answer, times its weight, the mean over the
// questions of a batch. The decoder has as many layers as model.text.fusion_layers.
type Loss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
	// answers of a question that take part, the heaviest
	Answers int `toml:"answers" max:"1000"`
	// token places of an answer, with those that stand around its words
	Tokens int `toml:"tokens" max:"65536"`
	// answers of a batch for which there is room, for a question on average; what does not fit is left out, the
	// lightest first; 0: objective.vqa.answers
	Rows float64 `toml:"rows" max:"1000"`
}

var _ tasks.Loss = (*Loss)(nil)

// Defaults implements section.Section.
func (l *Loss) Defaults() { *l = Loss{Answers: 10, Tokens: 10} }

// On implements section.Switched.
func (l *Loss) On() bool { return l.Weight > 0 }

// Trains implements tasks.Loss.
func (l *Loss) Trains() bool { return l.On() }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft, section.States}
}

// Check implements section.Section.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("weight", "rows")
	k.Positive("answers")
	k.Require("tokens", l.Tokens >= 3, "must be at least 3", "two tokens stand around the words of an answer")
	k.Require("tokens", l.Weight == 0 || l.Tokens <= int(k.Number("model.text.positions"))+1,
		"must be at most model.text.positions + 1", "the last token of an answer has no position")
}
