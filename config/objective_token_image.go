package config

// TokenImage is the hinge loss of the tokens of a text with its image against another one of the batch (ViPMM, equations 13 to 15,
// after Vokenization): the mean over the tokens of all texts.
type TokenImage struct {
	Weight    float64 `toml:"weight" max:"1000000"`         // of the loss in the total, 1 in ViPMM; 0: off
	Margin    float64 `toml:"margin" read:"token_image"`    // by which a token shall be nearer to its image, 0.5 in Vokenization
	Negatives string  `toml:"negatives" read:"token_image"` // random (each image is the wrong one of one other pair, anew at each step) | half (that of the pair half a batch away, as in Vokenization)
}

func (t *TokenImage) defaults() { *t = TokenImage{Margin: 0.5, Negatives: "random"} }

func (t *TokenImage) check(k *checker, c *Config) {
	k.tokenLoss("objective.token_image.weight", t.Weight, c)
	k.Require("objective.token_image.margin", t.Margin > 0 && t.Margin <= 1e4, "must be above 0 and at most 10000", "0.5 is what cosines are trained with")
	k.OneOf("objective.token_image.negatives", "random", "half")
}
