package config

import "github.com/geoalign/geoalign/data/source"

// EvalCaptioning says how a model writes captions of images in trainer eval --task captioning, by beam search, and what they are
// compared with.
type EvalCaptioning struct {
	Beams         int     `toml:"beams" max:"1000"`          // captions that the search follows
	MinTokens     int     `toml:"min_tokens" max:"65536"`    // tokens of a caption at least
	MaxTokens     int     `toml:"max_tokens" max:"65536"`    // tokens of a caption at most, with the one that ends it; 0: data.tokens
	LengthPenalty float64 `toml:"length_penalty" max:"1000"` // power of the length that the log-probability of a caption is divided by: larger values favour longer captions; 0: none
	Nearest       int     `toml:"nearest" max:"1000000000"`  // training images whose captions are the baseline: each image gets a caption of the most alike; 0: none
}

func (e *EvalCaptioning) defaults() {
	*e = EvalCaptioning{Beams: 3, LengthPenalty: 1, Nearest: 2000}
}

func (e *EvalCaptioning) check(k *checker, c *Config) {
	const path = "eval.captioning."
	k.Positive(path + "beams")
	k.NotNegative(path+"min_tokens", path+"max_tokens", path+"nearest", path+"length_penalty")
	if c.Objective.Captioning.byTransformer() == 0 {
		return
	}
	k.Require(path+"max_tokens", e.Most(c.Data) <= c.Model.Text.Positions, "must be at most model.text.positions")
	k.Require(path+"min_tokens", e.MinTokens < e.Most(c.Data), "must be below eval.captioning.max_tokens")
}

// Most returns the tokens of a caption at most, with the one that ends it.
func (e EvalCaptioning) Most(d source.Data) int {
	if e.MaxTokens > 0 {
		return e.MaxTokens
	}
	return d.Tokens
}
