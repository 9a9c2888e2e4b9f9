package config

// Distill is momentum distillation, shared by ITC and MLM.
type Distill struct {
	Alpha      float64 `toml:"alpha" read:"soft targets"`                   // weight of the teacher's soft targets
	RampSteps  int     `toml:"ramp_steps" read:"distill" max:"1000000000"`  // alpha grows linearly from 0 over this many steps; 0 with ramp_epochs 0: no ramp
	RampEpochs float64 `toml:"ramp_epochs" read:"distill" max:"1000000000"` // the same ramp in epochs; at most one of the two
}

func (d *Distill) defaults() { *d = Distill{Alpha: 0.4, RampEpochs: 1} }

func (d *Distill) check(k *checker, c *Config) {
	const path = "objective.distill.alpha"
	k.Require(path, d.Alpha >= 0 && d.Alpha <= 1, "must be between 0 and 1")
	k.NotNegative("objective.distill.ramp_steps", "objective.distill.ramp_epochs")
	k.Require(path, d.Alpha == 0 || !c.lacksTeacher(), "must be 0 without momentum", needsTeacher)
	k.Require(path, d.Alpha == 0 || c.Model.traits().captions, "must be 0", c.Model.named()+" has no soft targets of a teacher")
}
