package config

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// PairLoss is fine-tuning on pairs of sentences (data.kind = "sentence_pairs"): a classifier of their classes, or a regression
// of their scores. Sentences are encoded each by itself (Reimers and Gurevych 2019, "Sentence-BERT", section 3) or side by side
// (Devlin et al. 2019, "BERT", section 4).
type PairLoss struct {
	Weight   float64 `toml:"weight" max:"1000000"`                    // of the loss in the total; 0: off
	Encoding string  `toml:"encoding" read:"pair loss" fixed:"model"` // separate (vectors u and v of model.text.pool: classes by a linear layer over u, v and |u-v|, scores by their cosine) | joint (both sentences in one text, [CLS] a [SEP] b [SEP] with types: a pooler and a linear layer over the first token)
	Dropout  float64 `toml:"dropout" read:"joint pairs"`              // of what the pooler gives
}

// Values of objective.sentence_pairs.encoding.
const (
	PairsSeparate = "separate"
	PairsJoint    = "joint"
)

func (p *PairLoss) defaults() { *p = PairLoss{Encoding: PairsSeparate, Dropout: 0.1} }

func (p *PairLoss) check(k *checker, c *Config) {
	const path = "objective.sentence_pairs."
	k.NotNegative(path + "weight")
	k.OneOf(path+"encoding", PairsSeparate, PairsJoint)
	k.BelowOne(path + "dropout")
	judges := c.Has(section.SentencePairs)
	k.Require(path+"weight", judges || p.Weight == 0, "must be 0", k.Named()+` reads no pairs of sentences: use "sentence_pairs"`)
	k.Require(path+"weight", !judges || p.Weight > 0, "must be > 0", "it is the loss of "+k.Named())
	if !judges {
		return
	}
	k.Training("data.kind", c.Data.Kind == source.SentencePairsKind, `must be "`+source.SentencePairsKind+`"`, k.Named()+" is trained on these")
	t := c.Model.Text
	joint := p.Encoding == PairsJoint
	k.Require(path+"encoding", !joint || t.MasksWords() && t.Pooling() == "class", `must be "separate" with this text tower`, "joint reads the first token of BERT or RoBERTa: set model.text.style and model.text.pool")
	k.Training("model.text.freeze", !t.Freeze, "must be false", k.Named()+" trains the text tower")
}

// JointPairs says whether both sentences of a pair are one text.
func (c Config) JointPairs() bool {
	return c.Objective.SentencePairs.Weight > 0 && c.Objective.SentencePairs.Encoding == PairsJoint
}
