package config

// Triplet is the triplet loss of images with identities (Hermans et al. 2017). An anchor and its positive have one
// identity, its negative another. The score is that of objective.itc without the geodesic and without a temperature.
type Triplet struct {
	Weight    float64 `toml:"weight" max:"1000000"`      // of the loss in the total; 0: off
	Negatives string  `toml:"negatives" read:"triplet"`  // hardest (of each image the farthest positive and the nearest negative of the batch) | all (the mean over all triplets of the batch)
	Soft      bool    `toml:"soft" read:"triplet"`       // the soft margin, log(1 + exp(difference)), in the place of a margin
	Margin    float64 `toml:"margin" read:"hard margin"` // by which a positive shall be nearer than a negative
}

func (t *Triplet) defaults() { *t = Triplet{Margin: 0.3, Negatives: "hardest"} }

func (t *Triplet) check(k *checker, c *Config) {
	const path = "objective.triplet.weight"
	k.NotNegative(path)
	k.Require(path, t.Weight == 0 || c.Model.traits().identities, "must be 0", c.Model.named()+` has no identities: use "identities"`)
	k.Require("objective.triplet.margin", t.Margin > 0 && t.Margin <= 1e4, "must be above 0 and at most 10000", "0.3 is what distances are trained with")
	k.OneOf("objective.triplet.negatives", "hardest", "all")
	if t.Weight > 0 && c.Model.traits().identities {
		k.Require("data.identities.images", c.Data.Identities.Images >= 2, "must be at least 2 with objective.triplet.weight > 0", "a triplet has two images of one identity")
	}
}
