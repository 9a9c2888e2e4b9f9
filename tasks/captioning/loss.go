package captioning

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/tasks"
)

// Loss is the loss of a decoder that writes the caption of an image from its regions or patches, as VSRN has it beside
// the loss that matches (Li et al. 2019, section 3.4): the sum over the words of a caption, the mean over the batch.
type Loss struct {
	// of the loss in the total, 1 in VSRN; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
	// gru (recurrent units, VSRN's) | transformer (the decoder of objective.vqa over the tokens of the image, with
	// model.text.fusion_layers layers)
	Decoder string `toml:"decoder" fixed:"model"`
	// of the recurrent units that read the image and write the caption
	Width int `toml:"width" when:"decoder=gru" fixed:"model" max:"65536"`
	// channels of a word that the decoder reads
	Embedding int `toml:"embedding" when:"decoder=gru" fixed:"model" max:"65536"`
	// of what the recurrent units read
	Dropout float64 `toml:"dropout" when:"decoder=gru"`
	// of a caption that take part, the first ones, with those that stand around its words; 0: all
	Tokens int `toml:"tokens" max:"65536"`
}

// Values of objective.captioning.decoder.
const (
	GRU         = "gru"
	Transformer = "transformer"
)

var _ tasks.Loss = (*Loss)(nil)

// Defaults implements section.Section.
func (l *Loss) Defaults() {
	*l = Loss{Decoder: GRU, Width: 512, Embedding: 512, Dropout: 0.2, Tokens: 28}
}

// On implements section.Switched.
func (l *Loss) On() bool { return l.Weight > 0 }

// Trains implements tasks.Loss: captions by recurrent units are trained beside other losses.
func (l *Loss) Trains() bool { return l.On() && l.Decoder == Transformer }

// Gives implements section.Giver.
func (l *Loss) Gives() []section.Fact {
	list := []section.Fact{section.BatchImages, section.States, section.AllPatches}
	switch {
	case l.Decoder == Transformer:
		return append(list, section.FusedPairs, section.Soft)
	case l.Dropout > 0:
		return append(list, section.Beside, section.Dropout)
	}
	return append(list, section.Beside)
}

// Recurs says whether captions are written by recurrent units.
func (l *Loss) Recurs() bool { return l.On() && l.Decoder != Transformer }

// Needs implements section.Needer.
func (l *Loss) Needs() []section.Fact { return []section.Fact{section.Captions, section.Words} }

// Check implements section.Section.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("weight", "tokens")
	k.Positive("width", "embedding")
	k.Require("dropout", l.Dropout >= 0 && l.Dropout < 1, "must be at least 0 and below 1")
	k.Require("tokens", l.Tokens != 1, "must be at least 2, or 0", "the first token of a caption is given")
	k.OneOf("decoder", GRU, Transformer)
	cached := k.Value("data.cache_features").(bool) && k.Value("model.image.freeze").(bool)
	k.Training("weight", l.Weight == 0 || !cached, "must be 0 with data.cache_features and model.image.freeze",
		"the tokens of images are not kept")
}
