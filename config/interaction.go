package config

import "github.com/geoalign/geoalign/config/section"

// tokenScores tells scores that two tokens cannot be compared by, where model.interaction compares tokens.
func (k *checker) tokenScores(c *Config) {
	if !k.Has(section.TokenScores) {
		return
	}
	terms := c.PairTerms()
	k.Require(c.Objective.scorePath(), len(terms) == 1 && terms[0].Weight == 1 && (terms[0].Kind == ScoreCosine || terms[0].Kind == ScoreGSSF),
		"must be cosine or gssf with model.interaction", "that is how two tokens are compared")
}
