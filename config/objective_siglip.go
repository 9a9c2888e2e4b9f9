package config

// SigLIP is the sigmoid loss of Zhai et al. (2023, "Sigmoid Loss for Language Image
// Pre-Training", section 3.2): every image and every text of a batch are a question of their
// own, is this a pair, with the logit scale x score + bias. The score is that of
// objective.itc without the geodesic. Scale and bias are learned, the scale by its logarithm.
type SigLIP struct {
	Weight   float64 `toml:"weight" max:"1000000"`    // of the loss in the total; 0: off
	Scale    float64 `toml:"scale" read:"siglip"`     // initial scale of the scores; the paper's t = exp(t') with t' = log 10
	ScaleMax float64 `toml:"scale_max" read:"siglip"` // the scale is clamped to at most this
	Bias     float64 `toml:"bias" read:"siglip"`      // initial value of what is added to the logits: far below 0, since most pairs are none
}

func (s *SigLIP) defaults() { *s = SigLIP{Scale: 10, ScaleMax: 100, Bias: -10} }

func (s *SigLIP) check(k *checker, c *Config) {
	k.notNegative("objective.siglip.weight")
	k.require("objective.siglip.weight", s.Weight == 0 || c.Model.traits().captions, "must be 0", c.Model.named()+" reads no captions")
	// Outside of these float32 has no room for what is computed from them.
	k.require("objective.siglip.scale", s.Scale >= 1e-3 && s.Scale <= 1e4, "must be between 0.001 and 10000", "10 in the paper")
	k.require("objective.siglip.scale_max", s.ScaleMax >= s.Scale && s.ScaleMax <= 1e4, "must be at least objective.siglip.scale and at most 10000")
	k.require("objective.siglip.bias", s.Bias >= -1e3 && s.Bias <= 1e3, "must be between -1000 and 1000", "-10 in the paper")
}
