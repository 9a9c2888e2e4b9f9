package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// ClassLoss is fine-tuning of an image tower for classification: the cross-entropy of a linear layer over its class token, or over
// what model.image.pool makes of its tokens. The classes are those of the training data, whose names a checkpoint keeps.
type ClassLoss struct {
	Weight    float64 `toml:"weight" max:"1000000"`                 // of the loss in the total; 0: off
	Norm      bool    `toml:"norm" read:"class loss" fixed:"model"` // a layer norm between the tower and the linear layer
	Smoothing float64 `toml:"smoothing" read:"class loss"`          // share of the target that is spread over all classes (label smoothing)
	Mixup     float64 `toml:"mixup" read:"class loss" max:"1000"`   // alpha of mixup (Zhang et al. 2018): every image of a batch is lambda times itself and 1-lambda times the image at its place from the end, one lambda of Beta(alpha, alpha) for each batch; 0: off
	Cutmix    float64 `toml:"cutmix" read:"class loss" max:"1000"`  // alpha of CutMix (Yun et al. 2019): a box of every image is that of the image at its place from the end, one box for each batch; with mixup one of both, either with probability 1/2; 0: off
}

func (l *ClassLoss) defaults() { *l = ClassLoss{Smoothing: 0.1} }

func (l *ClassLoss) check(k *checker, c *Config) {
	const path = "objective.classes."
	k.NotNegative(path+"weight", path+"mixup", path+"cutmix")
	k.BelowOne(path + "smoothing")
	classifies := c.Has(section.Classes)
	k.Require(path+"weight", classifies || l.Weight == 0, "must be 0", k.Named()+` tells no classes: use "classes"`)
	k.Require(path+"weight", !classifies || l.Weight > 0, "must be > 0", "it is the loss of "+k.Named())
	if !classifies {
		return
	}
	k.Require("model.head.dim", c.Model.Head.Dim == c.Model.Image.TokenWidth(), fmt.Sprintf("must be %d, the width of what the image tower gives", c.Model.Image.TokenWidth()),
		"features of "+k.Named()+" are that, without a projection")
	k.Training("model.image.freeze", !c.Model.Image.Freeze, "must be false", k.Named()+" trains the image tower: trainer eval --task probe fits a classifier to a frozen one")
}

// Mixes says whether the images of a batch are mixed with each other.
func (l ClassLoss) Mixes() bool { return l.Weight > 0 && (l.Mixup > 0 || l.Cutmix > 0) }
