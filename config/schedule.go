package config

// Schedule is the learning rate over the steps. At most one warmup length may be set.
type Schedule struct {
	Kind          string  `toml:"kind"`                           // cosine (per step) | staircase (as ALBEF's code: warm-up ticks, cosine per epoch) | constant
	WarmupSteps   int     `toml:"warmup_steps" max:"1000000000"`  // length of the warm-up in steps
	WarmupEpochs  float64 `toml:"warmup_epochs" max:"1000000000"` // length of the warm-up in epochs
	WarmupPercent float64 `toml:"warmup_percent"`                 // length of the warm-up in percent of the run
	WarmupLR      float64 `toml:"warmup_lr" read:"warmup"`        // learning rate at the start of the warm-up
	MinLR         float64 `toml:"min_lr" read:"falling rate"`     // learning rate at the end of the run
}

func (s *Schedule) defaults() {
	*s = Schedule{Kind: "cosine", WarmupSteps: 2000, WarmupLR: 1e-5, MinLR: 1e-5}
}

func (s *Schedule) check(k *checker, c *Config) {
	k.OneOf("schedule.kind", "cosine", "staircase", "constant")
	k.NotNegative("schedule.warmup_steps", "schedule.warmup_epochs", "schedule.warmup_lr", "schedule.min_lr")
	k.Require("schedule.kind", s.Kind == "constant" || c.Train.MaxMinutes <= 0, "needs the length of the run in steps",
		`use "constant" with train.max_minutes`)
	k.Require("schedule.warmup_percent", s.WarmupPercent >= 0 && s.WarmupPercent < 100, "must be at least 0 and below 100")
	k.Require("schedule.min_lr", s.MinLR <= c.Optimizer.LR, "must be at most optimizer.lr")
	k.Require("schedule.warmup_lr", s.WarmupLR <= c.Optimizer.LR, "must be at most optimizer.lr")
}
