package config

// CMPM is cross-modal projection matching (Zhang and Lu 2018): the softmax of the scores of a
// row shall be the distribution of its matches.
type CMPM struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off
	Scale  float64 `toml:"scale" read:"cmpm"`    // scores are multiplied by this before the softmax: that of cosines alone is nearly flat
}

func (p *CMPM) defaults() { *p = CMPM{Scale: 1} }

func (p *CMPM) check(k *checker, c *Config) {
	k.pairLoss("objective.cmpm.weight", p.Weight, c)
	k.Require("objective.cmpm.scale", p.Scale >= 1e-3 && p.Scale <= 1e4, "must be between 0.001 and 10000")
}
