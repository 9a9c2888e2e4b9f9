package objectives

import "github.com/geoalign/geoalign/config/section"

// Queue holds past momentum features as negatives.
type Queue struct {
	// entries per modality, at least train.batch_size; 0: no queue
	Size int `toml:"size" fixed:"run" max:"16777216"`
	// first step whose contrast (objective.itc, objective.adcl) reads the queue
	StartSteps int `toml:"start_steps" when:"size>0 and objective.itc.weight>0 or size>0 and objective.adcl.weight>0" max:"1000000000"`
}

// Defaults implements section.Defaulter.
func (q *Queue) Defaults() { *q = Queue{Size: 65536} }

// Gives implements section.Giver.
func (q *Queue) Gives() []section.Fact {
	if q.Size == 0 {
		return nil
	}
	return []section.Fact{section.Queue}
}

// Check implements section.Checked.
func (q *Queue) Check(k *section.Checker) {
	k.NotNegative("size", "start_steps")
	if q.Size == 0 {
		return
	}
	rows := int(k.Number("train.batch_size"))
	k.Require("size", q.Size >= rows, "must be 0 or at least train.batch_size",
		"a batch would push out its own features: raise queue.size or lower train.batch_size")
	k.Require("size", !k.Has(section.FeatureBatches) || q.Size >= rows*int(k.Number("train.accumulate_steps")),
		"must be 0 or at least train.batch_size x train.accumulate_steps with train.accumulate = \"features\"",
		"the pairs of an update enter it together: raise queue.size or lower train.accumulate_steps")
	k.Require("size", k.Has(section.Queued), "must be 0", k.Named()+" compares a batch with itself")
	k.Require("size", !k.Has(section.Momentum) || k.Has(section.Teacher), "must be 0 without momentum",
		"it needs the teacher: set momentum.enabled = true")
}
