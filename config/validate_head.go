package config

import "fmt"

// topology checks the space of the head and what its class tokens need.
func (k *checker) topology(c Config) {
	h := c.Model.Head
	k.notNegative("model.head.token_blocks")
	space, err := h.Space()
	if err != nil {
		k.require("model.head.topology", h.Dim < 1, err.Error(), "n x m must be model.head.dim: change one of the two")
		return
	}
	towers := c.Model.System == "albef" || c.Model.System == "clip" // the others have one vector
	k.require("model.head.topology", towers || h.Topology == "sphere", `must be "sphere"`, `model.system "`+c.Model.System+`" has no other`)
	k.require("model.head.token_blocks", h.TokenBlocks == 0 || space.Tokens, "must be 0 without class tokens of their own", "set model.head.topology = \"Multi(n,m)\"")
	if !space.Tokens {
		return
	}
	k.require("model.head.token_blocks", h.TokenBlocks <= min(c.Model.Image.Depth, c.Model.Text.Layers), "must be at most model.image.depth and model.text.layers",
		"0 is all blocks")
	least := c.Data.Tokens + space.Spheres - 1
	k.require("model.text.positions", least <= c.Model.Text.Positions, fmt.Sprintf("must be at least data.tokens plus the repeated class tokens, %d", least),
		"Multi(n,m) repeats [CLS] m-1 times: raise model.text.positions")
	k.require("objective.tcl.local", !c.Objective.TCL.Local, "must be false with several class tokens", "a part is one token, which has no m spheres: use objective.tcl.intra, or another topology")
}

// clip requires what the dual encoder is trained with: contrast within the batch.
func (k *checker) clip(c Config) {
	if c.Model.System != "clip" {
		return
	}
	const hint = `model.system "clip" has contrast within the batch alone, objective.itc.in_batch_weight`
	k.require("momentum.enabled", !c.Momentum.Enabled, "must be false", hint)
	k.require("queue.size", c.Queue.Size == 0, "must be 0", hint)
	k.require("objective.itc.in_batch_weight", c.Objective.ITC.InBatchWeight > 0, "must be > 0", "it is the loss of model.system \"clip\"")
	for _, p := range []string{"objective.itc.weight", "objective.itm.weight", "objective.mlm.weight"} {
		k.require(p, k.number(p) == 0, "must be 0", hint)
	}
	k.require(c.Objective.scorePath(), !hasKind(c.Objective.ScoreTerms(), ScoreGeodesic), "must not be geodesic", "there is no queue that its graph could span")
	k.require("model.text.fusion_layers", c.Model.Text.FusionLayers == 0, "must be 0", hint)
	k.require("data.views", c.Data.Views == 1, "must be 1", "no teacher looks at a second view")
}
