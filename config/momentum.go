package config

// Momentum is the EMA teacher: its twins move by theta_m = m*theta_m + (1-m)*theta once a step. The share 1-m that they take
// of the online parameters is their online weight, which is what ViPMM prints as its m.
type Momentum struct {
	Enabled   bool    `toml:"enabled" fixed:"run"`                                // keep momentum (EMA) twins of both towers
	Rule      string  `toml:"rule" read:"momentum"`                               // static (m as below) | dynamic (1-m is the mean cosine of the batch's text features with those of the teacher, at least 0: twins that agree are copied anew, as ViPMM is printed) | dynamic_teacher (m is that cosine: twins that agree stay, in MoCo's sense of m); logged as online_weight, which is 1-m
	M         float64 `toml:"m" read:"static momentum"`                           // theta_m = m*theta_m + (1-m)*theta, once a step; 0: the twins are copies
	RampSteps int     `toml:"ramp_steps" read:"static momentum" max:"1000000000"` // m(t) = min(m, (1+t)/(ramp_steps+t)) at step t, so that a young teacher follows closely; 0: constant m
	Dropout   bool    `toml:"dropout" read:"teacher dropout"`                     // dropout active in the teacher, as in ALBEF's code
}

// Rules of momentum.
const (
	MomentumStatic         = "static"
	MomentumDynamic        = "dynamic"
	MomentumDynamicTeacher = "dynamic_teacher"
)

func (m *Momentum) defaults() {
	*m = Momentum{Enabled: true, Rule: MomentumStatic, M: 0.995, Dropout: true}
}

// Dynamic says whether the features of a batch tell how far the teacher moves.
func (m Momentum) Dynamic() bool {
	return m.Enabled && (m.Rule == MomentumDynamic || m.Rule == MomentumDynamicTeacher)
}

func (m *Momentum) check(k *checker, c *Config) {
	k.OneOf("momentum.rule", MomentumStatic, MomentumDynamic, MomentumDynamicTeacher)
	k.BelowOne("momentum.m")
	k.NotNegative("momentum.ramp_steps")
	k.Require("momentum.enabled", !m.Enabled || c.Model.traits().teacher, "must be false", "there is one encoder and no teacher in "+c.Model.named())
	k.Require("momentum.rule", !m.Dynamic() || c.Model.traits().captions, `must be "static"`, c.Model.named()+" has no texts to compare")
}

// needsTeacher is what is done about a part that reads a teacher where there is none.
const needsTeacher = "it needs the teacher: set momentum.enabled = true"

// lacksTeacher says whether a system that takes its keys from a teacher has none.
func (c *Config) lacksTeacher() bool { return c.Model.traits().teacher && !c.Momentum.Enabled }
