package config

// Momentum is the EMA teacher.
type Momentum struct {
	Enabled   bool    `toml:"enabled" fixed:"run"`                         // keep momentum (EMA) twins of both towers
	M         float64 `toml:"m" read:"momentum"`                           // theta_m = m*theta_m + (1-m)*theta, once a step
	RampSteps int     `toml:"ramp_steps" read:"momentum" max:"1000000000"` // m(t) = min(m, (1+t)/(ramp_steps+t)) at step t, so that a young teacher follows closely; 0: constant m
	Dropout   bool    `toml:"dropout" read:"teacher dropout"`              // dropout active in the teacher, as in ALBEF's code
}

func (m *Momentum) defaults() { *m = Momentum{Enabled: true, M: 0.995, Dropout: true} }

func (m *Momentum) check(k *checker, c *Config) {
	k.belowOne("momentum.m")
	k.notNegative("momentum.ramp_steps")
	k.require("momentum.enabled", !m.Enabled || c.Model.traits().teacher, "must be false", "there is one encoder and no teacher in "+c.Model.named())
}

// needsTeacher is what is done about a part that reads a teacher where there is none.
const needsTeacher = "it needs the teacher: set momentum.enabled = true"

// lacksTeacher says whether a system that takes its keys from a teacher has none.
func (c *Config) lacksTeacher() bool { return c.Model.traits().teacher && !c.Momentum.Enabled }
