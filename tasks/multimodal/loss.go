package multimodal

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/tasks"
)

// EntailmentLoss is fine-tuning on visual entailment (data.kind = "entailment"): whether a picture contradicts a
// sentence, entails it, or neither, by two linear layers over the first fused token (Li et al. 2021, section 5;
// SNLI-VE, Xie et al. 2019).
type EntailmentLoss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
}

// NLVRLoss is fine-tuning on statements about two pictures (data.kind = "nlvr"; Li et al. 2021, section 5; NLVR2, Suhr
// et al. 2019): is the statement true? Each fusion layer is two, of which the first attends to one picture and the
// second to the other, with the same keys and values.
type NLVRLoss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
}

// AssignmentLoss is pre-training for objective.nlvr on images with captions (Li et al. 2021, section 5, "text
// assignment"): of which of two images is the caption, or of none? Fusion layers are those of objective.nlvr, which can
// start from the checkpoint.
type AssignmentLoss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
}

// Loss is fine-tuning on texts with pictures and classes, whatever these are (data.kind = "multimodal"): their names
// are those that the training files have, and a checkpoint keeps them. Such data are memes that are hateful or not, and
// offers of the same product.
type Loss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
	// of a text, 1 or 2: with 2 each fusion layer is two, as for objective.nlvr
	Pictures int `toml:"pictures" fixed:"model" max:"2"`
}

var _ = []tasks.Loss{(*EntailmentLoss)(nil), (*NLVRLoss)(nil), (*AssignmentLoss)(nil), (*Loss)(nil)}

// Defaults implements section.Section.
func (l *EntailmentLoss) Defaults() {}

// Defaults implements section.Section.
func (l *NLVRLoss) Defaults() {}

// Defaults implements section.Section.
func (l *AssignmentLoss) Defaults() {}

// Defaults implements section.Section.
func (l *Loss) Defaults() { *l = Loss{Pictures: 1} }

// On implements section.Switched.
func (l *EntailmentLoss) On() bool { return l.Weight > 0 }

// On implements section.Switched.
func (l *NLVRLoss) On() bool { return l.Weight > 0 }

// On implements section.Switched.
func (l *AssignmentLoss) On() bool { return l.Weight > 0 }

// On implements section.Switched.
func (l *Loss) On() bool { return l.Weight > 0 }

// Trains implements tasks.Loss.
func (l *EntailmentLoss) Trains() bool { return l.On() }

// Trains implements tasks.Loss.
func (l *NLVRLoss) Trains() bool { return l.On() }

// Trains implements tasks.Loss.
func (l *AssignmentLoss) Trains() bool { return l.On() }

// Trains implements tasks.Loss.
func (l *Loss) Trains() bool { return l.On() }

// Gives implements section.Giver.
func (*EntailmentLoss) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft}
}

// Gives implements section.Giver.
func (*NLVRLoss) Gives() []section.Fact { return []section.Fact{section.FusedPairs, section.Soft} }

// Gives implements section.Giver: it has no teacher.
func (*AssignmentLoss) Gives() []section.Fact { return []section.Fact{section.FusedPairs} }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact { return []section.Fact{section.FusedPairs, section.Soft} }

// ReadsTwo implements tasks.TwoPictures.
func (l *NLVRLoss) ReadsTwo() bool { return l.On() }

// ReadsTwo implements tasks.TwoPictures.
func (l *AssignmentLoss) ReadsTwo() bool { return l.On() }

// ReadsTwo implements tasks.TwoPictures.
func (l *Loss) ReadsTwo() bool { return l.On() && l.Pictures == 2 }

// Check implements section.Section.
func (l *EntailmentLoss) Check(k *section.Checker) { k.NotNegative("weight") }

// Check implements section.Section.
func (l *NLVRLoss) Check(k *section.Checker) { checkTwo(k, l.On()) }

// Check implements section.Section.
func (l *AssignmentLoss) Check(k *section.Checker) {
	checkTwo(k, l.On())
	k.Training("train.batch_size", !l.On() || k.Number("train.batch_size") > 2,
		"must be at least 3 with objective.assignment", "a caption is shown with two other images of the batch")
}

// Check implements section.Section.
func (l *Loss) Check(k *section.Checker) {
	k.Require("pictures", l.Pictures == 1 || l.Pictures == 2, "must be 1 or 2")
	checkTwo(k, l.ReadsTwo())
}

// checkTwo checks a loss, which reads two pictures of a text if so.
func checkTwo(k *section.Checker, two bool) {
	k.NotNegative("weight")
	k.Require("weight", !two || k.Value("model.image.style") != "regions",
		`must be 0 with model.image.style = "regions"`, "two pictures of a text are pixels")
	recurs := k.Number("objective.captioning.weight") > 0 && k.Value("objective.captioning.decoder") != "transformer"
	k.Require("weight", !two || !recurs, "must be 0 with objective.captioning.weight > 0",
		"a caption is of one picture")
}
