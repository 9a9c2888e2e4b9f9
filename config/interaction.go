package config

import (
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// checkTokenScores tells losses and scores what they cannot be where model.interaction compares tokens.
func (c *Config) checkTokenScores(k *section.Checker) {
	if !k.Has(section.TokenScores) {
		return
	}
	for _, l := range c.on(section.Vectors) {
		k.Training(l.key(), false, "must be 0 with model.interaction",
			"it compares features: use objective.itc.in_batch_weight, objective.siglip, objective.hinge, objective.poly or objective.cmpm")
	}
	terms, kinds := c.PairTerms(), []scoring.Kind{scoring.Cosine, scoring.GSSF}
	k.Require(c.Objective.ITC.ScorePath(),
		len(terms) == 1 && terms[0].Weight == 1 && slices.Contains(kinds, terms[0].Kind),
		"must be cosine or gssf with model.interaction", "that is how two tokens are compared")
}
