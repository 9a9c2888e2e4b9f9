package config

import "github.com/geoalign/geoalign/objectives"

// Objective weighs the losses; a weight of 0 switches a loss off.
type Objective struct {
	Distill       Distill           `toml:"distill"`
	DistillScores DistillScores     `toml:"distill_scores"`
	ITC           ITC               `toml:"itc"`
	SigLIP        objectives.SigLIP `toml:"siglip"`
	Hinge         objectives.Hinge  `toml:"hinge"`
	Triplet       Triplet           `toml:"triplet"`
	Softmax       Softmax           `toml:"softmax"`
	Poly          Poly              `toml:"poly"`
	CMPM          CMPM              `toml:"cmpm"`
	SimCSE        SimCSE            `toml:"simcse"`
	MCSE          MCSE              `toml:"mcse"`
	SentencePairs PairLoss          `toml:"sentence_pairs"`
	Classes       ClassLoss         `toml:"classes"`
	KLOT          KLOT              `toml:"klot"`
	Structure     Structure         `toml:"structure"`
	GSSF          GSSF              `toml:"gssf" read:"metric"`
	Geodesic      Geodesic          `toml:"geodesic" read:"graph"`
	Geometric     Geometric         `toml:"geometric"`
	TCL           TCL               `toml:"tcl"`
	ADCL          ADCL              `toml:"adcl"`
	MAFA          MAFA              `toml:"mafa"`
	SwAV          SwAV              `toml:"swav" read:"prototypes"`
	ITM           ITM               `toml:"itm"`
	MLM           MLM               `toml:"mlm"`
	NLVR          NLVR              `toml:"nlvr"`
	Assignment    Assignment        `toml:"assignment"`
	Captioning    Captioning        `toml:"captioning"`
	VQA           VQA               `toml:"vqa"`
	WordPatch     WordPatch         `toml:"word_patch"`
	TokenImage    TokenImage        `toml:"token_image"`
	TextSwap      TextSwap          `toml:"text_swap"`

	Entailment EntailmentLoss `toml:"entailment"`
}

func (o *Objective) defaults() {}

// comparesBatch says whether a loss reads the scores of a batch.
func (o Objective) comparesBatch() bool {
	return o.ITC.InBatchWeight > 0 || o.SigLIP.Weight > 0 || o.Hinge.Weight > 0 || o.Triplet.Weight > 0 || o.Poly.Weight > 0 || o.CMPM.Weight > 0 ||
		o.DistillScores.Teacher != ""
}

// comparesTokens says whether a loss compares words with patches or images.
func (o Objective) comparesTokens() bool {
	return o.WordPatch.Weight > 0 || o.TokenImage.Weight > 0 || o.TextSwap.Weight > 0
}

// readsImages says whether a loss of pairs besides objective.mcse reads the images of a batch, all of which must be there.
func (o Objective) readsImages() bool {
	return o.ITC.Weight > 0 || o.comparesBatch() || o.comparesTokens() || o.ADCL.Weight > 0 || o.UsesGeometric() || o.Structure.Weight > 0 || o.Captioning.Weight > 0
}

func (o *Objective) check(k *checker, c *Config) {
	k.NotNegative("objective.itc.weight")
	some := o.ITC.Weight > 0 || o.comparesBatch() || o.KLOT.Weight > 0 || o.ITM.Weight > 0 || o.MLM.Weight > 0 || o.Softmax.Weight > 0 ||
		o.ADCL.Weight > 0 || o.comparesTokens() || o.SimCSE.Weight > 0 || o.MCSE.Weight > 0 || o.SentencePairs.Weight > 0 || o.Classes.Weight > 0 || o.task() != nil
	c.checkTask(k)
	k.Require("objective.itc.weight", some, "at least one objective must have a weight > 0")
}
