package config

import "slices"

// gradients are the ways in which a gradient passes the geodesic score.
var gradients = []string{
	"strict", "same_cluster", "straight_through", "soft_entry",
	"same_cluster+straight_through", "same_cluster+soft_entry", "straight_through+soft_entry",
	"same_cluster+straight_through+soft_entry",
}

// UsesGraph says whether anything of the objective reads the graph over the queue.
func (o Objective) UsesGraph() bool {
	return o.UsesGeodesic() || o.ITC.Weight > 0 && o.Geodesic.Weigh > 0
}

// UsesGeodesic says whether a score that is computed has the geodesic.
func (o Objective) UsesGeodesic() bool {
	return o.ITC.Weight > 0 && (hasKind(o.ScoreTerms(), ScoreGeodesic) || hasKind(o.TargetTerms(), ScoreGeodesic) && o.Distill.Alpha > 0) ||
		o.ITM.Weight > 0 && o.ITM.Negatives == ScoreGeodesic
}

func (k *checker) geodesic(c Config) {
	g, uses := c.Objective.Geodesic, c.Objective.UsesGraph()
	k.oneOf("objective.geodesic.construction", "group", "split")
	k.oneOf("objective.geodesic.kmeans_init", "plusplus", "rows")
	k.oneOf("objective.geodesic.gradient", gradients...)
	k.positive("objective.geodesic.neighbours", "objective.geodesic.iterations", "objective.geodesic.period_steps", "objective.geodesic.entries", "objective.geodesic.softness", "objective.geodesic.limit_pi")
	k.notNegative("objective.geodesic.lag_steps", "objective.geodesic.temperature", "objective.geodesic.weigh")
	k.require("objective.geodesic.mix", g.Mix > 0 && g.Mix <= 1, "must be above 0 and at most 1", `objective.itc.score = "cosine" switches the geodesic off`)
	k.require("objective.geodesic.lag_steps", g.LagSteps < max(g.PeriodSteps, 1), "must be below objective.geodesic.period_steps", "one graph would not be ready when the next is begun")
	// Outside of these float32 has no room for what is computed from them.
	k.require("objective.geodesic.limit_pi", g.LimitPi >= 0.01 && g.LimitPi <= 1000, "must be between 0.01 and 1000", "4 in the paper")
	k.require("objective.geodesic.softness", g.Softness >= 1e-4 && g.Softness <= 100, "must be between 0.0001 and 100")
	k.require("objective.geodesic.weigh", g.Weigh <= 1e4, "must be at most 10000")
	k.layers(g.Layers)
	if i := c.Objective.ITC; g.Temperature > 0 {
		k.require("objective.geodesic.temperature", g.Temperature >= c.LeastTemperature() && g.Temperature <= i.TemperatureMax,
			"must be 0 or lie between objective.itc.temperature_min and temperature_max")
	}
	k.require("objective.geodesic.weigh", g.Weigh == 0 || !hasKind(c.Objective.ScoreTerms(), ScoreGeodesic), `must be 0 with a geodesic score`,
		"it weighs the negatives of another score")
	k.require("objective.itc.target_score", c.Objective.ITC.TargetScore != "geodesic" || c.Objective.Distill.Alpha > 0 || hasKind(c.Objective.ScoreTerms(), ScoreGeodesic),
		"needs objective.distill.alpha > 0", "there are no soft targets without it")
	if !uses {
		return
	}
	const hint = "the geodesic needs the queue that its graph spans: or leave it out of the scores"
	k.require("momentum.enabled", c.Momentum.Enabled || c.Model.System == "swav", "must be true", hint)
	k.require("queue.size", c.Queue.Size > 0, "must be > 0", hint)
	if n := len(g.Layers); n > 0 {
		k.require("objective.geodesic.layers", c.Queue.Size == 0 || g.Layers[n-1] <= c.Queue.Size, "must not end in more clusters than queue.size",
			"use fewer clusters or a larger queue")
	}
	k.require("objective.itc.weight", c.Objective.ITC.Weight > 0, "must be > 0", "the graph is read by the contrast with the queue")
}

func (k *checker) layers(layers []int) {
	k.require("objective.geodesic.layers", len(layers) > 0, "must name at least the number of bottom centres", "such as [256]")
	k.require("objective.geodesic.layers", !slices.ContainsFunc(layers, func(n int) bool { return n < 1 }), "must hold numbers > 0")
	for i := 1; i < len(layers); i++ {
		k.require("objective.geodesic.layers", layers[i] > layers[i-1], "must grow from the top layer to the bottom one", "such as [16, 256]")
	}
}

func (k *checker) tcl(c Config) {
	t := c.Objective.TCL
	k.positive("objective.tcl.grid")
	if !t.Intra && !t.Local {
		return
	}
	for _, p := range []string{"objective.tcl.intra", "objective.tcl.local"} {
		if k.fields[p].Bool() {
			k.require(p, c.Objective.ITC.Weight > 0, "needs objective.itc.weight > 0", "its terms are part of the contrast against momentum features")
		}
	}
	if i := c.Model.Image; t.Local && i.Patch > 0 && t.Grid > 0 {
		k.require("objective.tcl.grid", i.Size/i.Patch%t.Grid == 0, "must divide the patches along a side of an image (model.image.size / model.image.patch)")
	}
}

func (k *checker) mafa(o Objective) {
	m := o.MAFA
	k.require("objective.mafa.positive_above", m.PositiveAbove >= 0 && m.PositiveAbove <= 1, "must be between 0 and 1")
	k.require("objective.mafa.negative_below", m.NegativeBelow >= 0 && m.NegativeBelow <= m.PositiveAbove, "must be between 0 and objective.mafa.positive_above")
	k.belowOne("objective.mafa.uniform")
	k.require("objective.mafa.uniform", m.Uniform == 0 || o.ITC.Weight+o.ITC.InBatchWeight > 0,
		"needs objective.itc.weight or objective.itc.in_batch_weight > 0", "it is a part of the contrast's targets")
	k.require("objective.mafa.connector", m.Connector == "" || o.ITM.Weight > 0, "needs objective.itm.weight > 0", "it relabels the negatives of matching")
}
