package captioning

import "github.com/geoalign/geoalign/config/section"

// Eval says how a model writes captions of images in trainer eval --task captioning, by beam search, and what they are
// compared with.
type Eval struct {
	// captions that the search follows
	Beams int `toml:"beams" max:"1000"`
	// tokens of a caption at least
	MinTokens int `toml:"min_tokens" max:"65536"`
	// tokens of a caption at most, with the one that ends it; 0: data.tokens
	MaxTokens int `toml:"max_tokens" max:"65536"`
	// power of the length that the log-probability of a caption is divided by: larger values favour longer captions;
	// 0: none
	LengthPenalty float64 `toml:"length_penalty" max:"1000"`
	// training images whose captions are the baseline: each image gets a caption of the most alike; 0: none
	Nearest int `toml:"nearest" max:"1000000000"`
}

// Defaults implements section.Defaulter.
func (e *Eval) Defaults() {
	*e = Eval{Beams: 3, LengthPenalty: 1, Nearest: 2000}
}

// Check implements section.Checked.
func (e *Eval) Check(k *section.Checker) {
	k.Positive("beams")
	k.NotNegative("min_tokens", "max_tokens", "nearest", "length_penalty")
	if k.Number("objective.captioning.weight") == 0 || k.Value("objective.captioning.decoder") != Transformer {
		return
	}
	most := e.Most(int(k.Number("data.tokens")))
	k.Require("max_tokens", most <= int(k.Number("model.text.positions")), "must be at most model.text.positions")
	k.Require("min_tokens", e.MinTokens < most, "must be below eval.captioning.max_tokens")
}

// Most returns the tokens of a caption at most, with the one that ends it, where texts have so many.
func (e *Eval) Most(tokens int) int {
	if e.MaxTokens > 0 {
		return e.MaxTokens
	}
	return tokens
}
