package config

// ImagesOnly says whether a system is trained on images without captions.
func (m Model) ImagesOnly() bool { return m.System == "moco" || m.System == "swav" }

// images requires what systems of images alone are trained with: two views of each image
// and no loss that reads a caption.
func (k *checker) images(c Config) {
	w := c.Objective.SwAV
	k.positive("objective.swav.epsilon", "objective.swav.iterations")
	k.require("objective.swav.prototypes", w.Prototypes >= 2, "must be >= 2")
	k.notNegative("objective.swav.freeze_steps")
	if !c.Model.ImagesOnly() {
		return
	}
	system := "model.system \"" + c.Model.System + "\""
	k.require("data.views", c.Data.Views == 2, "must be 2", system+" compares two views of an image")
	for _, p := range []string{"objective.itm.weight", "objective.mlm.weight"} {
		k.require(p, k.number(p) == 0, "must be 0", system+" reads no captions")
	}
	k.require("objective.distill.alpha", c.Objective.Distill.Alpha == 0, "must be 0", system+" has no soft targets of a teacher")
	k.require("objective.itc.positives", c.Objective.ITC.Positives == "pair", `must be "pair"`, system+" knows an image by its views alone")
	for _, t := range c.Objective.ScoreTerms() {
		path := "objective.itc.score"
		if len(c.Objective.ITC.Scores) > 0 {
			path = "objective.itc.scores"
		}
		k.require(path, t.Kind == ScoreCosine || t.Kind == ScoreGeodesic, "must be cosine or geodesic", system+" has no other")
	}
	k.require("objective.geodesic.weigh", c.Objective.Geodesic.Weigh == 0, "must be 0", system+" does not weigh negatives")
	k.require("objective.itc.weight", c.Objective.ITC.Weight > 0, "must be > 0", "it is the loss of "+system)
	for _, p := range []string{"objective.tcl.intra", "objective.tcl.local"} {
		k.require(p, !k.fields[p].Bool(), "must be false", system+" reads no captions")
	}
	if c.Model.System == "swav" {
		k.require("momentum.enabled", !c.Momentum.Enabled, "must be false", "both views pass the same encoder in "+system)
		k.require("objective.itc.in_batch_weight", c.Objective.ITC.InBatchWeight == 0, "must be 0", system+" compares no pairs")
	}
}
