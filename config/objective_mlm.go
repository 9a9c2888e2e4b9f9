package config

// MLM is masked language modelling.
type MLM struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total
	Prob   float64 `toml:"prob" read:"mlm"`      // probability that a token is chosen for prediction
}

func (m *MLM) defaults() { *m = MLM{Weight: 1, Prob: 0.15} }

func (m *MLM) check(k *checker, c *Config) {
	const path = "objective.mlm.weight"
	k.NotNegative(path)
	k.Require("objective.mlm.prob", m.Prob >= 0 && m.Prob < 1, "must be at least 0 and below 1")
	k.Require("objective.mlm.prob", m.Prob > 0 || m.Weight == 0, "must be above 0 and below 1",
		"set objective.mlm.weight = 0 to switch the loss off")
	has := c.Model.traits()
	k.Require(path, m.Weight == 0 || has.captions, "must be 0", c.Model.named()+" reads no captions")
	k.Require(path, m.Weight == 0 || has.words, "must be 0", c.Model.named()+" has no text tower, whose words would be masked")
	k.Require(path, m.Weight == 0 || has.fusion, "must be 0", c.Model.named()+" has no fusion layers, which predict the words")
}
