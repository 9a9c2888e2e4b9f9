package config

// VQA is the loss of a decoder that writes the answers to a question about an image from the states of the fusion layers (ALBEF,
// Li et al. 2021, section 4): the sum over the tokens of an answer, times its weight, the mean over the questions of a batch. The
// decoder has as many layers as model.text.fusion_layers.
type VQA struct {
	Weight  float64 `toml:"weight" max:"1000000"`          // of the loss in the total; 0: off
	Answers int     `toml:"answers" read:"vqa" max:"1000"` // answers of a question that take part, the heaviest
	Tokens  int     `toml:"tokens" read:"vqa" max:"65536"` // token places of an answer, with those that stand around its words
	Rows    float64 `toml:"rows" read:"vqa" max:"1000"`    // answers of a batch for which there is room, for a question on average; what does not fit is left out, the lightest first; 0: objective.vqa.answers
}

func (v *VQA) defaults() { *v = VQA{Answers: 10, Tokens: 10} }

func (v *VQA) check(k *checker, c *Config) {
	const path = "objective.vqa."
	k.NotNegative(path+"weight", path+"rows")
	k.Positive(path + "answers")
	k.Require(path+"tokens", v.Tokens >= 3, "must be at least 3", "two tokens stand around the words of an answer")
	k.Require(path+"tokens", v.Weight == 0 || v.Tokens <= c.Model.Text.Positions+1, "must be at most model.text.positions + 1", "the last token of an answer has no position")
}
