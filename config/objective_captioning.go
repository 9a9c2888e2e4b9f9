package config

import "github.com/geoalign/geoalign/config/section"

// Captioning is the loss of a decoder that writes the caption of an image from its regions or patches, as VSRN has it beside
// the loss that matches (Li et al. 2019, section 3.4): the sum over the words of a caption, the mean over the batch.
type Captioning struct {
	Weight    float64 `toml:"weight" max:"1000000"`                                      // of the loss in the total, 1 in VSRN; 0: off
	Decoder   string  `toml:"decoder" read:"captioning" fixed:"model"`                   // gru (recurrent units, VSRN's) | transformer (the decoder of objective.vqa over the tokens of the image, with model.text.fusion_layers layers)
	Width     int     `toml:"width" read:"gru captioning" fixed:"model" max:"65536"`     // of the recurrent units that read the image and write the caption
	Embedding int     `toml:"embedding" read:"gru captioning" fixed:"model" max:"65536"` // channels of a word that the decoder reads
	Dropout   float64 `toml:"dropout" read:"gru captioning"`                             // of what the recurrent units read
	Tokens    int     `toml:"tokens" read:"captioning" max:"65536"`                      // of a caption that take part, the first ones, with those that stand around its words; 0: all
}

// Values of objective.captioning.decoder.
const (
	CaptionGRU         = "gru"
	CaptionTransformer = "transformer"
)

func (p *Captioning) defaults() {
	*p = Captioning{Decoder: CaptionGRU, Width: 512, Embedding: 512, Dropout: 0.2, Tokens: 28}
}

func (p *Captioning) check(k *checker, c *Config) {
	const path = "objective.captioning.weight"
	k.NotNegative(path, "objective.captioning.tokens")
	k.Positive("objective.captioning.width", "objective.captioning.embedding")
	k.Require("objective.captioning.dropout", p.Dropout >= 0 && p.Dropout < 1, "must be at least 0 and below 1")
	k.Require("objective.captioning.tokens", p.Tokens != 1, "must be at least 2, or 0", "the first token of a caption is given")
	k.OneOf("objective.captioning.decoder", CaptionGRU, CaptionTransformer)
	if p.Weight == 0 {
		return
	}
	k.Require(path, c.Has(section.Captions) && c.Has(section.Words), "must be 0", k.Named()+" has no captions of words")
	k.Training(path, !c.Data.CacheFeatures || !c.Model.Image.Freeze, "must be 0 with data.cache_features and model.image.freeze", "the tokens of images are not kept")
}

// byTransformer is the weight of the loss where captions are written by the transformer.
func (p Captioning) byTransformer() float64 {
	if p.Decoder != CaptionTransformer {
		return 0
	}
	return p.Weight
}

// recurs says whether captions are written by recurrent units.
func (p Captioning) recurs() bool { return p.Weight > 0 && p.Decoder != CaptionTransformer }

// Writes says whether the model has the decoder that objective.vqa and objective.captioning train.
func (c Config) Writes() bool {
	return c.Objective.VQA.Weight > 0 || c.Objective.Captioning.byTransformer() > 0
}
