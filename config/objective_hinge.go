package config

// Hinge is the triplet loss with a margin of VSE++ (Faghri et al. 2018), which region-word
// systems are trained with: the sum over the batch and both directions. The score is that of
// model.interaction, or of objective.itc without the geodesic.
type Hinge struct {
	Weight       float64 `toml:"weight" max:"1000000"`                          // of the loss in the total; 0: off
	Margin       float64 `toml:"margin" read:"hinge"`                           // by which a pair shall be nearer than a negative
	Negatives    string  `toml:"negatives" read:"hinge"`                        // hardest (the nearest negative of a row or column) | all (their sum)
	WarmupSteps  int     `toml:"warmup_steps" read:"hardest" max:"1000000000"`  // the first steps have all negatives; 0: as warmup_epochs says
	WarmupEpochs float64 `toml:"warmup_epochs" read:"hardest" max:"1000000000"` // the same in epochs, 1 in VSE-infinity; at most one of the two
}

func (h *Hinge) defaults() { *h = Hinge{Margin: 0.2, Negatives: "hardest"} }

func (h *Hinge) check(k *checker, c *Config) {
	k.pairLoss("objective.hinge.weight", h.Weight, c)
	k.require("objective.hinge.margin", h.Margin > 0 && h.Margin <= 1e4, "must be above 0 and at most 10000", "0.2 is what cosines are trained with")
	k.oneOf("objective.hinge.negatives", "hardest", "all")
	k.notNegative("objective.hinge.warmup_steps", "objective.hinge.warmup_epochs")
}

// pairLoss checks the weight of a loss over the scores of the pairs of a batch.
func (k *checker) pairLoss(path string, weight float64, c *Config) {
	k.notNegative(path)
	k.require(path, weight == 0 || c.Model.traits().captions, "must be 0", c.Model.named()+" reads no captions")
}
