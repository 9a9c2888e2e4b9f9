package objectives

import "github.com/geoalign/geoalign/config/section"

// Momentum is the momentum encoder, an EMA copy of both towers that moves by theta_m = m*theta_m + (1-m)*theta once a
// step. The share 1-m that it takes of the online parameters is the online weight, which is what ViPMM prints as its m.
type Momentum struct {
	// keep momentum encoders (EMA copies) of both towers
	Enabled bool `toml:"enabled" fixed:"run"`
	// static (m as below) | dynamic (1-m is the mean cosine of the batch's text features with those of the teacher, at
	// least 0: encoders that agree are copied anew, as ViPMM is printed) | dynamic_teacher (m is that cosine: encoders
	// that agree stay, in MoCo's sense of m); logged as online_weight, which is 1-m
	Rule string `toml:"rule" when:"enabled=true"`
	// theta_m = m*theta_m + (1-m)*theta, once a step; 0: copies
	M float64 `toml:"m" when:"enabled=true and rule=static"`
	// m(t) = min(m, (1+t)/(ramp_steps+t)) at step t, so that a young teacher follows closely; 0: constant m
	RampSteps int `toml:"ramp_steps" when:"enabled=true and rule=static" max:"1000000000"`
	// dropout active in the teacher, as in ALBEF's code
	Dropout bool `toml:"dropout" when:"enabled=true and teacher features and tower dropout"`
}

// Rules of momentum.
const (
	MomentumStatic         = "static"
	MomentumDynamic        = "dynamic"
	MomentumDynamicTeacher = "dynamic_teacher"
)

// Defaults implements section.Defaulter.
func (m *Momentum) Defaults() {
	*m = Momentum{Enabled: true, Rule: MomentumStatic, M: 0.995, Dropout: true}
}

// Dynamic says whether the features of a batch tell how far the teacher moves.
func (m Momentum) Dynamic() bool {
	return m.Enabled && (m.Rule == MomentumDynamic || m.Rule == MomentumDynamicTeacher)
}

// Gives implements section.Giver.
func (m *Momentum) Gives() (list []section.Fact) {
	if m.Enabled {
		list = append(list, section.Teacher)
	}
	if m.Dynamic() {
		list = append(list, section.TeacherFeatures)
	}
	return list
}

// Check implements section.Checked.
func (m *Momentum) Check(k *section.Checker) {
	k.OneOf("rule", MomentumStatic, MomentumDynamic, MomentumDynamicTeacher)
	k.BelowOne("m")
	k.NotNegative("ramp_steps")
	k.Require("enabled", !m.Enabled || k.Has(section.Momentum), "must be false",
		"there is one encoder and no teacher in "+k.Named())
	k.Require("rule", !m.Dynamic() || k.Has(section.Captions), `must be "static"`, k.Named()+" has no texts to compare")
}
