package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// Host is the model of a loss as far as it is known before a step is built, in training and when the model is used.
type Host struct {
	Config  *section.View        // all sections and what holds between them; nil: nothing holds
	Words   Words                // of the vocabulary
	Classes int                  // K, of the classes that the training data names; 0: it names none
	Text    encoders.TextEncoder // with its fusion layers
}

// Words is what losses are told of the vocabulary.
type Words struct {
	Vocab    int     // V
	MaskID   int32   // id of [MASK]
	Specials []int32 // ids that are not hidden besides the first of a text
	End      int32   // id that ends a text which a decoder writes; -1: the last token of a text of the batch does
}

// Has says whether a fact holds in the configuration.
func (h Host) Has(f section.Fact) bool { return h.Config != nil && h.Config.Has(f) }

// Decoder is the decoder of the model: its fusion layers with words, positions and a head of their own. It has no
// learned metric and is not tuned.
func (h Host) Decoder() encoders.Decoder {
	b, ok := h.Text.(encoders.BERT)
	Need(ok && b.FusionLayers > 0, "decoder",
		"has the structure of fusion layers: set model.text.fusion_layers > 0, with a model.text.style of bert or roberta")
	b.Layers, b.Classes, b.TokenBlocks, b.FinalNorm = 0, 0, 0, false
	b.Metric, b.FusionMetric = encoders.AttentionMetric{}, encoders.AttentionMetric{}
	return encoders.Decoder{BERT: b}
}
