package config

// WordPatch is the contrast of the words of texts with the patches of images within the batch (ViPMM, equations 8 to 12): each patch
// is compared with a summary of the text, each word with one of the image, the sum of both directions.
type WordPatch struct {
	Weight             float64 `toml:"weight" max:"1000000"`                  // of the loss in the total, 1 in ViPMM; 0: off
	Temperature        float64 `toml:"temperature" read:"word_patch"`         // of the cosines of words and patches with their summaries, tau_phi in ViPMM
	ContextTemperature float64 `toml:"context_temperature" read:"word_patch"` // of the softmax of the attention that makes a summary, tau_1 in ViPMM, which does not say its value
	AttentionScale     float64 `toml:"attention_scale" read:"word_patch"`     // of the products of words and patches that the attention is the softmax of: nearly flat at 1, the value of ViPMM
	Reduce             string  `toml:"reduce" read:"word_patch"`              // mean (over words and over patches) | sum (as printed, which favours long texts)
}

func (w *WordPatch) defaults() {
	*w = WordPatch{Temperature: 0.1, ContextTemperature: 0.1, AttentionScale: 1, Reduce: "mean"}
}

func (w *WordPatch) check(k *checker, c *Config) {
	k.tokenLoss("objective.word_patch.weight", w.Weight, c)
	for _, path := range []string{"objective.word_patch.temperature", "objective.word_patch.context_temperature", "objective.word_patch.attention_scale"} {
		v := k.Number(path)
		k.Require(path, v >= 1e-3 && v <= 1e4, "must be between 0.001 and 10000")
	}
	k.OneOf("objective.word_patch.reduce", "mean", "sum")
}

// tokenLoss checks the weight of a loss over the tokens of images and texts within a batch.
func (k *checker) tokenLoss(path string, weight float64, c *Config) {
	k.NotNegative(path)
	if weight == 0 {
		return
	}
	has := c.Model.traits()
	k.Require(path, has.captions && has.words && has.tokens, "must be 0", c.Model.named()+" has no words and patches in one space")
	space, err := c.Model.Head.Space()
	k.Require(path, err != nil || !space.Tokens, "must be 0 with model.head.topology = \"Multi(n,m)\"", "a word or a patch is one token and has no m spheres")
	k.Training(path, !c.Data.CacheFeatures || !c.Model.Image.Freeze && !c.Model.Text.Freeze, "must be 0 with data.cache_features and a frozen tower", "tokens are not kept")
	k.Training("train.batch_size", c.Train.BatchSize >= 2, "must be at least 2 with "+path+" > 0", "a pair is told from others of its batch")
}
