package config

// TCL adds the terms of triple contrastive learning to the contrast, whose loss is then
// the mean of all terms.
type TCL struct {
	Intra bool `toml:"intra"`                        // image against image and text against text, in both cases against momentum features and the queue
	Local bool `toml:"local"`                        // parts of an image, and tokens of a text, against the whole
	Grid  int  `toml:"grid" read:"local" max:"1024"` // an image has grid x grid parts, each the mean of its patches
}

func (t *TCL) defaults() { *t = TCL{Grid: 4} }

func (t *TCL) check(k *checker, c *Config) {
	k.Positive("objective.tcl.grid")
	has := c.Model.traits()
	for _, p := range []string{"objective.tcl.intra", "objective.tcl.local"} {
		if k.Value(p) == true {
			k.Require(p, has.captions, "must be false", c.Model.named()+" reads no captions")
			k.Require(p, c.Objective.ITC.Weight > 0, "needs objective.itc.weight > 0", "its terms are part of the contrast against momentum features")
		}
	}
	if !t.Local {
		return
	}
	k.Require("objective.tcl.local", has.tokens, "must be false", c.Model.named()+" has no parts of an image or text")
	k.Require("objective.tcl.local", !c.ReadsRegions(), `must be false with model.image.style = "regions"`, "parts of an image are squares of its patches")
	if i := c.Model.Image; (i.Patch > 0 || c.readsResNet()) && t.Grid > 0 {
		k.Require("objective.tcl.grid", i.Grid()%t.Grid == 0, "must divide the patches along a side of an image (model.image.size / model.image.patch, of a residual network the places of its last layer)")
	}
}
