package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

// newEntailment is the loss of visual entailment.
func newEntailment(cfg config.Config) objectives.Entailment {
	return objectives.Entailment{Weight: cfg.Objective.Entailment.Weight, Head: encoders.TaskHead{Classes: config.EntailmentClasses}}
}
