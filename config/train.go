package config

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/train/schedule"
)

// Train is the loop. Exactly one of the max_* durations must be set.
type Train struct {
	// pairs of a micro-batch, of all processes that train together; each has an equal share
	BatchSize int `toml:"batch_size" max:"1048576"`
	// micro-batches per update
	AccumulateSteps int `toml:"accumulate_steps" max:"65536"`
	// what the micro-batches of an update add up: gradients (a loss for each, which compares the pairs of a
	// micro-batch) | features (one loss, which compares the pairs of all, as if they were one batch: another forward
	// pass, the memory of one micro-batch)
	Accumulate string `toml:"accumulate" when:"accumulate_steps>1"`
	// length of the run in updates
	MaxSteps int `toml:"max_steps" max:"1000000000"`
	// length of the run in passes over the training data, each of whole batches: with data.drop_last = false the
	// samples that fill no batch at the end of one count as a batch
	MaxEpochs float64 `toml:"max_epochs" max:"1000000000"`
	// length of the run in pairs
	MaxSamples int `toml:"max_samples" max:"1000000000000000"`
	// length of the run in minutes of training
	MaxMinutes float64 `toml:"max_minutes" max:"1000000000"`
	// steps between two lines of metrics.jsonl
	LogEverySteps int `toml:"log_every_steps" max:"1000000000"`
	// steps between two evaluations; 0: at the end only
	EvalEverySteps int `toml:"eval_every_steps" max:"1000000000"`
	// steps between two checkpoints; 0: by minutes and at the end only
	SaveEverySteps int `toml:"save_every_steps" change:"harmless" max:"1000000000"`
	// minutes between two checkpoints; 0: by steps and at the end only
	SaveEveryMinutes float64 `toml:"save_every_minutes" change:"harmless" max:"1000000000"`
	// newest checkpoints kept; 0: all
	KeepLast int `toml:"keep_last" change:"harmless" max:"1000000000"`
	// best checkpoints kept, by the mean of all recalls of the evaluations, or by the measure of another task, such as
	// an accuracy, the mAP of identities or the CIDEr of captions
	KeepBest int `toml:"keep_best" change:"harmless" max:"1000000000"`
	// better | first | rerank: whose recalls those are with eval.rerank_top > 0: of the pair score, of re-ranking, or
	// at each evaluation of the one with the larger mean; or the name of another number of the evaluations in
	// metrics.jsonl, larger is better, such as eval/sts/stsb/spearman
	KeepBestBy string `toml:"keep_best_by" change:"harmless"`
	// checkpoints at multiples of this step are kept for ever; 0: none
	KeepEverySteps int `toml:"keep_every_steps" change:"harmless" max:"1000000000"`
	// stop | skip | rollback: what to do when the loss or the gradient norm is not finite
	OnNaN string `toml:"on_nan"`
}

// Defaults implements section.Defaulter.
func (t *Train) Defaults() {
	*t = Train{BatchSize: 64, AccumulateSteps: 1, Accumulate: AccumulateGradients, MaxEpochs: 30, LogEverySteps: 10,
		SaveEverySteps: 1000, SaveEveryMinutes: 15, KeepLast: 2, KeepBest: 1, KeepBestBy: KeepByBetter, OnNaN: "stop"}
}

// Values of train.accumulate.
const (
	AccumulateGradients = "gradients"
	AccumulateFeatures  = "features"
)

// AccumulatesFeatures says whether losses compare the pairs of several micro-batches.
func (c *Config) AccumulatesFeatures() bool {
	return c.Train.Accumulate == AccumulateFeatures && c.Train.AccumulateSteps > 1
}

// ComparedRows returns the number of pairs that a process has of those that losses compare with each other.
func (c *Config) ComparedRows() int {
	if c.AccumulatesFeatures() {
		return c.Train.BatchSize * c.Train.AccumulateSteps
	}
	return c.RankRows()
}

// Length is how long the run is.
func (t *Train) Length() schedule.Length {
	return schedule.Length{BatchSize: t.BatchSize, AccumulateSteps: t.AccumulateSteps, MaxSteps: t.MaxSteps,
		MaxSamples: t.MaxSamples, MaxEpochs: t.MaxEpochs, MaxMinutes: t.MaxMinutes}
}

// HeldBatches returns the batches that a step has in memory at a time.
func (c *Config) HeldBatches() int {
	if c.AccumulatesFeatures() {
		return c.Train.AccumulateSteps
	}
	return 1
}

// Values of train.keep_best_by.
const (
	KeepByBetter = "better"
	KeepByFirst  = "first"
	KeepByRerank = "rerank"
)

// KeepsByMetric says whether train.keep_best_by names a number of the evaluations.
func (t *Train) KeepsByMetric() bool { return strings.HasPrefix(t.KeepBestBy, "eval/") }

// Check implements section.Checked.
func (t *Train) Check(k *section.Checker) {
	c := section.Of[Config](k)
	k.Positive("batch_size", "accumulate_steps", "log_every_steps")
	k.Require("batch_size", t.BatchSize >= 2, "must be >= 2",
		"contrast and matching need another pair as a negative")
	k.NotNegative("max_steps", "max_epochs", "max_samples", "max_minutes",
		"eval_every_steps", "save_every_steps", "save_every_minutes", "keep_last",
		"keep_best", "keep_every_steps")
	if !t.KeepsByMetric() {
		k.OneOf("keep_best_by", KeepByBetter, KeepByFirst, KeepByRerank)
	}
	for _, of := range []string{"eval/sts/", "eval/pairs/", "eval/isotropy/"} {
		k.Training("keep_best_by", !strings.HasPrefix(t.KeepBestBy, of) ||
			slices.Contains(c.Eval.Beside, "sentences") || k.Has(section.Sentences) && len(c.Eval.Sentences.Tasks) > 0,
			"names a number that is not measured", `add "sentences" to eval.beside`)
	}
	k.OneOf("on_nan", "stop", "skip", "rollback")
	k.OneOf("accumulate", AccumulateGradients, AccumulateFeatures)
	if c.AccumulatesFeatures() {
		t.checkFeatures(k, c)
	}
}

// checkFeatures tells losses that read more than features, which are all that is kept of the
// micro-batches.
func (t *Train) checkFeatures(k *section.Checker, c *Config) {
	k.Training("accumulate", k.Has(section.Captions), `must be "gradients"`, k.Named()+" has no pairs")
	for _, l := range c.on(section.States) {
		k.Training("accumulate", false, `must be "gradients" with `+l.key()+" > 0",
			"it reads more than the features of other micro-batches: set "+l.key()+" = 0")
	}
}
