package config

// Softmax is the classification of images by their identity, with a linear classifier over features that have
// no part in the search (the "ID loss" of re-identification).
type Softmax struct {
	Weight    float64 `toml:"weight" max:"1000000"`                                // of the loss in the total; 0: off
	Classes   int     `toml:"classes" read:"softmax" fixed:"model" max:"16777216"` // rows of the classifier, at least the identities of the training data
	Smoothing float64 `toml:"smoothing" read:"softmax"`                            // share of the target that is spread over all classes (label smoothing)
}

func (s *Softmax) defaults() { *s = Softmax{Smoothing: 0.1} }

func (s *Softmax) check(k *checker, c *Config) {
	const path = "objective.softmax.weight"
	k.NotNegative(path, "objective.softmax.classes")
	k.Require(path, s.Weight == 0 || c.Model.traits().identities, "must be 0", c.Model.named()+` has no identities: use "identities"`)
	k.Require("objective.softmax.classes", s.Weight == 0 || s.Classes >= 2, "must be at least 2", "the number of identities of the training data")
	k.BelowOne("objective.softmax.smoothing")
}
