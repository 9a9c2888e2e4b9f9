package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/space"
)

// Distill is momentum distillation, shared by ITC and MLM.
type Distill struct {
	// weight of the teacher's soft targets
	Alpha float64 `toml:"alpha" when:"soft targets"`
	// alpha grows linearly from 0 over this many steps; 0 with ramp_epochs 0: no ramp
	RampSteps int `toml:"ramp_steps" when:"alpha>0 and soft targets" max:"1000000000"`
	// the same ramp in epochs; at most one of the two
	RampEpochs float64 `toml:"ramp_epochs" when:"alpha>0 and soft targets" max:"1000000000"`
}

// Defaults implements section.Defaulter.
func (d *Distill) Defaults() { *d = Distill{Alpha: 0.4, RampEpochs: 1} }

// Ramp is the weight of the teacher's soft targets.
func (d *Distill) Ramp() Ramp { return Ramp{To: d.Alpha, Steps: d.RampSteps, Epochs: d.RampEpochs} }

// Derives implements section.Deriver.
func (d *Distill) Derives(v *section.View) []section.Fact {
	switch soft := v.Has(section.Soft); {
	case d.Alpha == 0:
		return []section.Fact{section.SoftTargets}
	case soft:
		return []section.Fact{section.SoftTargets, section.TeacherFeatures, section.TeacherImages}
	}
	return nil
}

// Check implements section.Checked.
func (d *Distill) Check(k *section.Checker) {
	k.Share("alpha")
	k.NotNegative("ramp_steps", "ramp_epochs")
	k.Require("alpha", d.Alpha == 0 || !lacksTeacher(k), "must be 0 without momentum", needsTeacher)
	k.Require("alpha", d.Alpha == 0 || k.Has(section.Captions), "must be 0",
		k.Named()+" has no soft targets of a teacher")
}

// needsTeacher is what is done about a part that reads a teacher where there is none.
const needsTeacher = "it needs the teacher: set momentum.enabled = true"

// lacksTeacher says whether a system that takes its keys from a teacher has none.
func lacksTeacher(k *section.Checker) bool {
	return k.Has(section.Momentum) && k.Value("momentum.enabled") == false
}

// accumulatesFeatures says whether features of several micro-batches are compared with each other.
func accumulatesFeatures(k *section.Checker) bool {
	return k.Value("train.accumulate") == "features" && k.Number("train.accumulate_steps") > 1
}

// headSpace is the space of the features.
func headSpace(k *section.Checker) (space.Space, error) {
	return space.Parse(k.Value("model.head.topology").(string), int(k.Number("model.head.dim")))
}

// Ramp is a value that grows linearly from 0 over some updates, or over some epochs if
// those are more.
type Ramp struct {
	To     float64
	Steps  int
	Epochs float64
}

// At returns the value after so many updates, where an epoch has perEpoch of them.
func (r Ramp) At(update int, perEpoch float64) float64 {
	n := max(r.Steps, int(math.Round(r.Epochs*perEpoch)))
	if n <= 0 || update >= n {
		return r.To
	}
	return r.To * float64(update) / float64(n)
}
