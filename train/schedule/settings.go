package schedule

import "github.com/geoalign/geoalign/config/section"

// Settings is the learning rate over the steps. At most one warmup length may be set.
type Settings struct {
	// cosine (per step) | staircase (as ALBEF's code: warm-up ticks, cosine per epoch) | step (falls at
	// epochs, as in the code of VSE++ and SCAN) | constant
	Kind string `toml:"kind"`
	// length of the warm-up in steps
	WarmupSteps int `toml:"warmup_steps" max:"1000000000"`
	// length of the warm-up in epochs
	WarmupEpochs float64 `toml:"warmup_epochs" max:"1000000000"`
	// length of the warm-up in percent of the run
	WarmupPercent float64 `toml:"warmup_percent"`
	// learning rate at the start of the warm-up
	WarmupLR float64 `toml:"warmup_lr" when:"warmup_steps>0 or warmup_epochs>0 or warmup_percent>0"`
	// learning rate at the end of the run
	MinLR float64 `toml:"min_lr" when:"kind=cosine|staircase"`
	// epochs after each of which the learning rate falls; VSE++, SCAN and BFAN have 15
	StepEpochs int `toml:"step_epochs" when:"kind=step" max:"1000000000"`
	// what it is multiplied by then
	StepFactor float64 `toml:"step_factor" when:"kind=step"`
}

// Defaults implements section.Defaulter.
func (s *Settings) Defaults() {
	*s = Settings{Kind: "cosine", WarmupSteps: 2000, WarmupLR: 1e-5, MinLR: 1e-5, StepEpochs: 15, StepFactor: 0.1}
}

// Check implements section.Checked.
func (s *Settings) Check(k *section.Checker) {
	k.OneOf("kind", "cosine", "staircase", "step", "constant")
	k.Positive("step_epochs")
	k.Require("step_factor", s.StepFactor > 0 && s.StepFactor <= 1, "must be above 0 and at most 1")
	k.NotNegative("warmup_steps", "warmup_epochs", "warmup_lr", "min_lr")
	k.Require("kind", s.Kind == "constant" || s.Kind == "step" || k.Number("train.max_minutes") <= 0,
		"needs the length of the run in steps", `use "constant" or "step" with train.max_minutes`)
	k.Require("warmup_percent", s.WarmupPercent >= 0 && s.WarmupPercent < 100, "must be at least 0 and below 100")
	k.Require("min_lr", s.MinLR <= k.Number("optimizer.lr"), "must be at most optimizer.lr")
	k.Require("warmup_lr", s.WarmupLR <= k.Number("optimizer.lr"), "must be at most optimizer.lr")
}
