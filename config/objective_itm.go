package config

// ITM is image-text matching with hard negatives.
type ITM struct {
	Weight        float64 `toml:"weight" max:"1000000"`              // of the loss in the total
	Negatives     string  `toml:"negatives" read:"itm"`              // drawn by: score (of the contrast), or one of the kinds of objective.itc.score; geodesic is that of the teacher
	NegativeFloor float64 `toml:"negative_floor" read:"itm" max:"1"` // added to the softmax that negatives are drawn by, so that some are drawn whatever their score; 0: the softmax alone, as in ALBEF
}

func (m *ITM) defaults() { *m = ITM{Weight: 1, Negatives: "score"} }

func (m *ITM) check(k *checker, c *Config) {
	const path = "objective.itm.weight"
	k.NotNegative(path, "objective.itm.negative_floor")
	k.OneOf("objective.itm.negatives", append([]string{"score"}, scoreKinds...)...)
	has := c.Model.traits()
	k.Require(path, m.Weight == 0 || has.captions, "must be 0", c.Model.named()+" reads no captions")
	k.Require(path, m.Weight == 0 || has.fusion, "must be 0", c.Model.named()+" has no fusion layers, which matching reads")
}
