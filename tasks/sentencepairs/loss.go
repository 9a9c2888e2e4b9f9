package sentencepairs

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// Loss is fine-tuning on pairs of sentences (data.kind = "sentence_pairs"): a classifier of their classes, or a
// regression of their scores. Sentences are encoded each by itself (Reimers and Gurevych 2019, "Sentence-BERT", section
// 3) or side by side (Devlin et al. 2019, "BERT", section 4).
type Loss struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
	// separate (vectors u and v of model.text.pool: classes by a linear layer over u, v and |u-v|, scores by their
	// cosine) | joint (both sentences in one text, [CLS] a [SEP] b [SEP] with types: a pooler and a linear layer over
	// the first token)
	Encoding string `toml:"encoding" fixed:"model"`
	// of what the pooler gives
	Dropout float64 `toml:"dropout" when:"encoding=joint"`
}

// Values of objective.sentence_pairs.encoding.
const (
	Separate = "separate"
	Joint    = "joint"
)

// Defaults implements section.Section.
func (p *Loss) Defaults() { *p = Loss{Encoding: Separate, Dropout: 0.1} }

// On implements section.Switched.
func (p *Loss) On() bool { return p.Weight > 0 }

// Joint says whether both sentences of a pair are one text.
func (p *Loss) Joint() bool { return p.On() && p.Encoding == Joint }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact { return []section.Fact{section.Beside} }

// Check implements section.Section.
func (p *Loss) Check(k *section.Checker) {
	k.NotNegative("weight")
	k.OneOf("encoding", Separate, Joint)
	k.BelowOne("dropout")
	judges, named := k.Has(section.SentencePairs), fmt.Sprintf("model.system %q", k.System)
	k.Require("weight", judges || p.Weight == 0, "must be 0",
		named+` reads no pairs of sentences: use "sentence_pairs"`)
	k.Require("weight", !judges || p.Weight > 0, "must be > 0", "it is the loss of "+named)
	if !judges {
		return
	}
	k.Training("data.kind", k.Value("data.kind") == Name, `must be "`+Name+`"`, named+" is trained on these")
	k.Training("model.text.freeze", !k.Value("model.text.freeze").(bool), "must be false",
		named+" trains the text tower")
}
