package config

// ITC is image-text contrast.
type ITC struct {
	Weight           float64     `toml:"weight" max:"1000000"`                             // of the contrast against momentum features and the queue
	Score            string      `toml:"score" read:"score"`                               // how an image and a text are compared: cosine (on Ob and Multi the sum of the cosines of their spheres) | inner (product) | l2 (minus the distance) | angle (minus the oblique geodesic distance, on a sphere the angle) | gssf (the learned metric of objective.gssf) | geodesic (through the graph of objective.geodesic, in the contrast with the queue alone)
	Scores           []ScoreTerm `toml:"scores" read:"score"`                              // a weighted sum in the place of score, such as [{kind = "geodesic", weight = 0.5}, {kind = "gssf", weight = 0.5}]; kinds are those of score
	TargetScore      string      `toml:"target_score" read:"soft contrast"`                // behind the teacher's soft targets: same (as score) or one of its kinds
	InBatchWeight    float64     `toml:"in_batch_weight" max:"1000000"`                    // of the in-batch contrast with gradient to both sides; a model from random weights needs it
	Positives        string      `toml:"positives" read:"pairs"`                           // pair (only the own pair) | id (all with the same image id)
	Temperature      float64     `toml:"temperature" read:"temperature"`                   // initial value, by which scores are divided
	TemperatureMin   float64     `toml:"temperature_min" read:"temperature" max:"1000000"` // the temperature is clamped to at least this; 0, with log_temperature: 0.01 x spheres of the head, CLIP's cap of the scale, 100/m: an initial temperature below that needs a least one of its own
	TemperatureMax   float64     `toml:"temperature_max" read:"temperature" max:"1000000"` // the temperature is clamped to at most this
	LearnTemperature bool        `toml:"learn_temperature" read:"contrasts"`               // train the temperature with the other parameters
	LogTemperature   bool        `toml:"log_temperature" read:"temperature" fixed:"model"` // the parameter is the logarithm of the scale 1/temperature, as in CLIP, and not the temperature, as in ALBEF
}

// ScoreTerm is one term of objective.itc.scores.
type ScoreTerm struct {
	Kind   string  `toml:"kind"`
	Weight float64 `toml:"weight"`
}

func (i *ITC) defaults() {
	*i = ITC{Weight: 1, Score: "cosine", TargetScore: "same", Positives: "pair", Temperature: 0.07, TemperatureMin: 0.001,
		TemperatureMax: 0.5, LearnTemperature: true}
}

func (i *ITC) check(k *checker, c *Config) {
	k.NotNegative("objective.itc.weight", "objective.itc.in_batch_weight")
	k.Require("objective.itc.weight", i.Weight == 0 || !c.lacksTeacher(), "must be 0 without momentum", needsTeacher+",",
		"or use objective.itc.in_batch_weight")
	k.OneOf("objective.itc.positives", "pair", "id")
	k.scores(*c)
	i.checkTemperature(k, c)
	if c.Model.traits().captions {
		return
	}
	system := c.Model.named()
	if c.Model.ByIdentity() {
		k.Require("objective.itc.weight", i.Weight == 0, "must be 0", system+" is trained by objective.triplet.weight and objective.softmax.weight")
		k.Require("objective.itc.in_batch_weight", i.InBatchWeight == 0, "must be 0", system+" compares no pairs")
		k.Require(c.Objective.scorePath(), !hasKind(c.Objective.ScoreTerms(), ScoreGeodesic), "must not be geodesic", system+" has no queue")
		return
	}
	if c.Model.Classifies() {
		k.Require("objective.itc.weight", i.Weight == 0, "must be 0", system+" is trained by objective.classes.weight")
		k.Require("objective.itc.in_batch_weight", i.InBatchWeight == 0, "must be 0", system+" compares no pairs")
		k.Require("objective.itc.positives", i.Positives == "pair", `must be "pair"`, system+" compares no pairs")
		return
	}
	if c.Model.TextsOnly() {
		k.Require("objective.itc.weight", i.Weight == 0, "must be 0", system+" compares no images with texts")
		k.Require("objective.itc.in_batch_weight", i.InBatchWeight == 0, "must be 0", system+" compares no images with texts")
		k.Require("objective.itc.positives", i.Positives == "pair", `must be "pair"`, system+" knows a sentence by its text alone")
		return
	}
	k.Require("objective.itc.positives", i.Positives == "pair", `must be "pair"`, system+" knows an image by its views alone")
	for _, t := range c.Objective.ScoreTerms() {
		k.Require(c.Objective.scorePath(), t.Kind == ScoreCosine || t.Kind == ScoreGeodesic, "must be cosine or geodesic", system+" has no other")
	}
	k.Require("objective.itc.weight", i.Weight > 0, "must be > 0", "it is the loss of "+system)
	k.Require("objective.itc.in_batch_weight", i.InBatchWeight == 0 || c.Model.traits().teacher, "must be 0", system+" compares no pairs")
}

// checkTemperature checks the range of the temperature.
func (i *ITC) checkTemperature(k *checker, c *Config) {
	k.Positive("objective.itc.temperature", "objective.itc.temperature_max")
	k.Require("objective.itc.temperature_min", i.TemperatureMin > 0 || i.LogTemperature && i.TemperatureMin == 0, "must be > 0",
		"or 0 with objective.itc.log_temperature, which caps the scale at 100 for each sphere")
	least := c.LeastTemperature()
	k.Require("objective.itc.temperature_max", i.TemperatureMax >= least, "must be at least objective.itc.temperature_min")
	k.Require("objective.itc.temperature", i.Temperature >= least && i.Temperature <= i.TemperatureMax,
		"must lie between objective.itc.temperature_min and temperature_max")
}

// LeastTemperature returns the least temperature of the contrast: that of the
// configuration, or m/100 for a head of m spheres, by which the scale 1/temperature is at
// most 100/m (clip-mtob).
func (c Config) LeastTemperature() float64 {
	if t := c.Objective.ITC.TemperatureMin; t > 0 {
		return t
	}
	space, _ := c.Model.Head.Space()
	return float64(space.Spheres) / 100
}
