package classes

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// Loss is fine-tuning of an image tower for classification: the cross-entropy of a linear layer over its class token,
// or over what model.image.pool makes of its tokens. The classes are those of the training data, whose names a
// checkpoint keeps.
type Loss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
	// a layer norm between the tower and the linear layer
	Norm bool `toml:"norm" fixed:"model"`
	// share of the target that is spread over all classes (label smoothing)
	Smoothing float64 `toml:"smoothing"`
	// alpha of mixup (Zhang et al. 2018): every image of a batch is lambda times itself and 1-lambda times the image
	// at its place from the end, one lambda of Beta(alpha, alpha) for each batch; 0: off
	Mixup float64 `toml:"mixup" max:"1000"`
	// alpha of CutMix (Yun et al. 2019): a box of every image is that of the image at its place from the end, one box
	// for each batch; with mixup one of both, either with probability 1/2; 0: off
	Cutmix float64 `toml:"cutmix" max:"1000"`
}

// Defaults implements section.Section.
func (l *Loss) Defaults() { *l = Loss{Smoothing: 0.1} }

// On implements section.Switched.
func (l *Loss) On() bool { return l.Weight > 0 }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact { return []section.Fact{section.Beside} }

// Check implements section.Section.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("weight", "mixup", "cutmix")
	k.BelowOne("smoothing")
	classifies, named := k.Has(section.Classes), fmt.Sprintf("model.system %q", k.System)
	k.Require("weight", classifies || l.Weight == 0, "must be 0", named+` tells no classes: use "classes"`)
	k.Require("weight", !classifies || l.Weight > 0, "must be > 0", "it is the loss of "+named)
}

// Mixes says whether the images of a batch are mixed with each other.
func (l Loss) Mixes() bool { return l.Weight > 0 && (l.Mixup > 0 || l.Cutmix > 0) }
