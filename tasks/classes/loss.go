package classes

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Loss is fine-tuning of an image tower for classification: the cross-entropy of a linear layer over its class token,
// or over what model.image.pool makes of its tokens. The classes are those of the training data, whose names a
// checkpoint keeps.
//
// With label smoothing (Szegedy et al. 2016, section 7) it is
//
//	mean_i -sum_k y_ik log softmax(logits)_ik,  y_i = (1-Smoothing) [k = label_i] + Smoothing/K
//
// An image without a class is left out. Of mixed images the target is lambda y_i + (1-lambda) y_(B-1-i). As the loss is
// linear in the target, that is the same sum of the losses with either label.
type Loss struct {
	section.Weighted
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

	mixed []float32 // images of all ranks that are mixed
}

// HeadName is the scope of the parameters of the head.
const HeadName = "class_head"

var (
	_ objectives.Preparer   = (*Loss)(nil)
	_ objectives.Columned   = (*Loss)(nil)
	_ objectives.Classifier = (*Loss)(nil)
)

// Defaults implements section.Defaulter.
func (l *Loss) Defaults() { *l = Loss{Smoothing: 0.1} }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact { return []section.Fact{section.Beside, section.NamedClasses} }

// Check implements section.Checked.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("mixup", "cutmix")
	k.BelowOne("smoothing")
	classifies, named := k.Has(section.Classes), fmt.Sprintf("model.system %q", k.System)
	k.Require("weight", classifies || l.Weight == 0, "must be 0", named+` tells no classes: use "classes"`)
	k.Require("weight", !classifies || l.Weight > 0, "must be > 0", "it is the loss of "+named)
}

// mixes says whether the images of a batch are mixed with each other.
func (l *Loss) mixes() bool { return l.Mixup > 0 || l.Cutmix > 0 }

// Columns implements objectives.Columned.
func (*Loss) Columns(objectives.Host) []batch.Column {
	return []batch.Column{{Name: batch.Labels, Type: batch.Int32}}
}

// Prepare implements objectives.Preparer.
func (l *Loss) Prepare(s *objectives.Step) {
	if s.Reads.Online.Image.Features = true; l.mixes() {
		l.mix(s)
	}
}

// Outputs implements objectives.Classifier.
func (l *Loss) Outputs(s *objectives.Step, x objectives.Side) *gorgonia.Node {
	root := s.Params.As(encoders.Traits{Settings: "the data to one of as many classes as that"})
	return encoders.ClassHead{Classes: s.Classes, Norm: l.Norm}.Logits(root.In(HeadName), x.Classes)
}

// Build implements objectives.Loss.
func (l *Loss) Build(s *objectives.Step) []objectives.Part {
	x := contrast.CrossEntropyArgs{Logits: l.Outputs(s, s.Online.Image)} // (B, K)
	if x.Labels = s.Column(l.Columns(s.Host)[0], s.Rows); l.Smoothing > 0 {
		x.Uniform = s.SharedFloats("label smoothing", []float32{float32(l.Smoothing)})
	}
	if !l.mixes() {
		return s.Classification("classes", l.Weight, x)
	}
	own := s.CrossEntropy(x)
	x.Labels = otherLabels(s)
	part := s.Part("classes", l.Weight, arith.Add(arith.MulScalar(own, s.Node(mixOwn)),
		arith.MulScalar(s.CrossEntropy(x), s.Node(mixOther))))
	part.Chance = math.Log(float64(s.Classes))
	return []objectives.Part{part}
}
