package multimodal

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/examples"
)

// EntailmentLoss is fine-tuning on visual entailment (data.kind = "entailment"): whether a picture contradicts a
// sentence, entails it, or neither, by two linear layers over the first fused token (Li et al. 2021, section 5;
// SNLI-VE, Xie et al. 2019).
type EntailmentLoss struct{ texts }

// NLVRLoss is fine-tuning on statements about two pictures (data.kind = "nlvr"; Li et al. 2021, section 5; NLVR2, Suhr
// et al. 2019): is the statement true? Each fusion layer is two, of which the first attends to one picture and the
// second to the other, with the same keys and values.
type NLVRLoss struct{ texts }

// Loss is fine-tuning on texts with pictures and classes, whatever these are (data.kind = "multimodal"): their names
// are those that the training files have, and a checkpoint keeps them. Such data are memes that are hateful or not, and
// offers of the same product.
type Loss struct {
	texts
	// of a text, 1 or 2: with 2 each fusion layer is two, as for objective.nlvr
	Pictures int `toml:"pictures" fixed:"model" max:"2"`
}

// Defaults implements section.Defaulter.
func (l *EntailmentLoss) Defaults() {
	l.texts = texts{name: EntailmentName, classes: len(examples.EntailmentClasses)}
}

// Defaults implements section.Defaulter.
func (l *NLVRLoss) Defaults() { l.texts = texts{name: NLVRName, classes: len(examples.NLVRClasses)} }

// Defaults implements section.Defaulter.
func (l *Loss) Defaults() { *l = Loss{texts: texts{name: Name}, Pictures: 1} }

// Gives implements section.Giver.
func (l *NLVRLoss) Gives() []section.Fact { return append(l.texts.Gives(), section.TwoPictures) }

// Gives implements section.Giver.
func (l *Loss) Gives() []section.Fact {
	list := append(l.texts.Gives(), section.NamedClasses)
	if l.Pictures == 2 {
		list = append(list, section.TwoPictures)
	}
	return list
}

// Check implements section.Checked.
func (l *NLVRLoss) Check(k *section.Checker) { checkTwo(k, l.On()) }

// Check implements section.Checked.
func (l *Loss) Check(k *section.Checker) {
	k.Require("pictures", l.Pictures == 1 || l.Pictures == 2, "must be 1 or 2")
	checkTwo(k, l.On() && l.Pictures == 2)
}

// checkTwo checks a loss, which reads two pictures of a text if so.
func checkTwo(k *section.Checker, two bool) {
	k.Require("weight", !two || k.Value("model.image.style") != "regions",
		`must be 0 with model.image.style = "regions"`, "two pictures of a text are pixels")
	recurs := k.Number("objective.captioning.weight") > 0 && k.Value("objective.captioning.decoder") != "transformer"
	k.Require("weight", !two || !recurs, "must be 0 with objective.captioning.weight > 0",
		"a caption is of one picture")
}
