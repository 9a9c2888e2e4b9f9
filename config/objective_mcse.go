package config

// MCSE is the grounding of sentences of Zhang et al. (2022, "MCSE", equations 3 and 4): both passes of a text under dropout
// should find the image of the text among those of the batch. It stands beside objective.simcse, and its weight is the paper's lambda.
type MCSE struct {
	Weight      float64 `toml:"weight" max:"1000000"`                  // of the loss in the total, 0.05 for captions alone and 0.01 beside other sentences in the paper; 0: off
	Temperature float64 `toml:"temperature" read:"mcse" max:"1000000"` // by which cosines are divided; constant
}

func (m *MCSE) defaults() { *m = MCSE{Temperature: 0.05} }

func (m *MCSE) check(k *checker, c *Config) {
	const path = "objective.mcse.weight"
	k.NotNegative(path)
	k.least("objective.mcse.temperature")
	if m.Weight == 0 {
		return
	}
	k.Require(path, c.Model.traits().captions, "must be 0", c.Model.named()+" has no images beside its texts")
	k.sentences(c, path)
}
