package config

// TextSwap is the hinge loss of pairs whose text is swapped for another one of the batch, by the scores of features and of what
// attention across the modalities makes of them (ViPMM, equations 16 to 19): the mean over the pairs that are swapped.
type TextSwap struct {
	Weight      float64 `toml:"weight" max:"1000000"`         // of the loss in the total, 1 in ViPMM; 0: off
	Margin      float64 `toml:"margin" read:"text_swap"`      // by which a pair shall be nearer than a swapped one; ViPMM does not say its value
	Alpha       float64 `toml:"alpha" read:"text_swap"`       // weight of the score after attention; ViPMM does not say its value
	Probability float64 `toml:"probability" read:"text_swap"` // that the text of a pair is swapped; ViPMM does not say its value
	Attention   string  `toml:"attention" read:"text_swap"`   // local (between the words of a text and the patches of an image) | batch (among the features of the batch)
	Recompute   bool    `toml:"recompute" read:"text_swap"`   // a swapped pair has attention of its own on both sides, where ViPMM keeps that of the right pair on one
	Images      bool    `toml:"images" read:"text_swap"`      // a second term swaps images in the place of texts
}

func (t *TextSwap) defaults() {
	*t = TextSwap{Margin: 0.2, Alpha: 0.5, Probability: 0.5, Attention: "local"}
}

func (t *TextSwap) check(k *checker, c *Config) {
	k.tokenLoss("objective.text_swap.weight", t.Weight, c)
	k.Require("objective.text_swap.margin", t.Margin > 0 && t.Margin <= 1e4, "must be above 0 and at most 10000", "0.2 is what cosines are trained with")
	k.Require("objective.text_swap.alpha", t.Alpha >= 0 && t.Alpha <= 1e4, "must be between 0 and 10000")
	k.Require("objective.text_swap.probability", t.Probability >= 0 && t.Probability <= 1, "must be between 0 and 1")
	k.Require("objective.text_swap.probability", t.Probability > 0 || t.Weight == 0, "must be above 0 and at most 1", "to leave the loss out set objective.text_swap.weight = 0")
	k.OneOf("objective.text_swap.attention", "local", "batch")
}
