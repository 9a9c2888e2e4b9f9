package config

// Poly is the polynomial loss of Wei et al. (2020): pairs and their hardest negatives are
// weighed by polynomials of their scores, which should lie in [-1, 1].
type Poly struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off
	Margin float64 `toml:"margin" read:"poly"`   // a pair whose hardest negative is further away than this has no loss
}

func (p *Poly) defaults() { *p = Poly{Margin: 0.2} }

func (p *Poly) check(k *checker, c *Config) {
	k.pairLoss("objective.poly.weight", p.Weight, c)
	k.Require("objective.poly.margin", p.Margin >= 0 && p.Margin <= 1e4, "must be between 0 and 10000", "0.2 in the paper's code")
}
