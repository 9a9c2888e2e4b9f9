package objectives

import (
	"cmp"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/relation"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Structure is the regulariser of STRUCTURE (NeurIPS 2025): random walks among the rows of a batch end where they end
// before the head.
//
// A walk on a side has steps by the softmax of the cosines of rows. The loss of a side is the mean Jensen-Shannon
// divergence of walks of 1 to L steps. What is before the head is a constant to it: the gradient passes the features
// alone.
type Structure struct {
	// for each modality; 0: off
	section.Weighted
	// both | image | text
	Modalities string `toml:"modalities"`
	// L: walks of 1 to L steps are compared
	Hops int `toml:"hops" max:"16"`
	// by which cosines after the head are divided: the smaller, the more a step goes to the nearest alone
	Temperature float64 `toml:"temperature"`
	// by which cosines before the head are divided; 0: temperature
	TargetTemperature float64 `toml:"target_temperature"`
	// the weight grows linearly from 0 over this many steps; 0: no warm-up
	WarmupSteps int `toml:"warmup_steps" max:"1000000000"`
}

var _ Loss = (*Structure)(nil)

// Defaults implements section.Defaulter.
func (l *Structure) Defaults() { *l = Structure{Modalities: "both", Hops: 1, Temperature: 0.05} }

// Needs implements section.Needer.
func (*Structure) Needs() []section.Fact { return []section.Fact{section.Captions} }

// Gives implements section.Giver.
func (*Structure) Gives() []section.Fact {
	return []section.Fact{section.Vectors, section.States, section.BatchImages, section.Beside}
}

// Target returns the temperature before the head.
func (l *Structure) Target() float64 { return cmp.Or(l.TargetTemperature, l.Temperature) }

// Check implements section.Checked.
func (l *Structure) Check(k *section.Checker) {
	k.NotNegative("warmup_steps")
	k.OneOf("modalities", "both", "image", "text")
	k.Positive("hops")
	const hint = "0.05 keeps a step to the nearest few"
	k.Require("temperature", l.Temperature >= 1e-3 && l.Temperature <= 1e3, "must be between 0.001 and 1000", hint)
	k.Require("target_temperature", l.TargetTemperature == 0 || l.TargetTemperature >= 1e-3 &&
		l.TargetTemperature <= 1e3, "must be 0, or between 0.001 and 1000", hint)
}

// Build implements Loss.
func (l *Structure) Build(s *Step) (parts []Part) {
	s = s.Whole()
	var share *gorgonia.Node
	if ramp := (Ramp{To: 1, Steps: l.WarmupSteps}); l.WarmupSteps > 0 {
		share = s.Floats("structure share", func(f *feed.Step, dst []float32) error {
			dst[0] = float32(ramp.At(f.Update, f.PerEpoch))
			return nil
		})
	}
	add := func(name string, x Side) {
		part := s.Part(name, l.Weight, relation.HopDivergence(relation.HopArgs{
			Scores: cosines(x.Features), Target: cosines(s.Backbone(x)),
			Temperature: float32(l.Temperature), TargetTemperature: float32(l.Target()), Hops: l.Hops,
		}))
		part.Share = share
		parts = append(parts, part)
	}
	if l.Modalities != "text" {
		add("structure_image", s.Online.Image)
	}
	if l.Modalities != "image" {
		add("structure_text", s.Online.Text)
	}
	return parts
}

// cosines returns those of all rows x (N, D) with each other, (N, N).
func cosines(x *gorgonia.Node) *gorgonia.Node {
	unit := nn.L2Normalize(x, referenceEps)
	return similarity.Similarity(unit, unit, nil, nil)
}
