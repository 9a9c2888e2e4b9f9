package config

import (
	"fmt"
	"slices"
)

// Geodesic is the distance of GeoMM: the angle along the shortest path through a graph
// over the queue of each modality.
type Geodesic struct {
	Layers          []int   `toml:"layers" max:"65536"`                    // clusters of each layer, top first; the last number is K, the bottom centres: [256] is flat
	Construction    string  `toml:"construction" read:"layers"`            // group (k-means of the queue into K, whose centres are grouped upwards) | split (the clusters of the top layer are split downwards)
	Neighbours      int     `toml:"neighbours" max:"65536"`                // nearest centres that a centre has an edge to
	Iterations      int     `toml:"iterations" max:"1000"`                 // Lloyd iterations of k-means
	KMeansInit      string  `toml:"kmeans_init"`                           // plusplus | rows (random entries of the queue)
	WarmStart       bool    `toml:"warm_start"`                            // k-means starts from the centres of the last graph
	PeriodSteps     int     `toml:"period_steps" max:"1000000000"`         // T0, steps between two rebuilds; the first is made when the queue is full, until then a geodesic is the cosine
	LagSteps        int     `toml:"lag_steps" max:"1000000000"`            // 0: a rebuild is part of its step; n: it runs beside the next n steps and is then switched in
	Gradient        string  `toml:"gradient"`                              // strict (eq. 3 literally) or some of same_cluster, straight_through, soft_entry, joined by +
	Entries         int     `toml:"entries" read:"soft entry" max:"65536"` // centres that soft_entry may enter the graph by, all of them where there are fewer
	Softness        float64 `toml:"softness" read:"soft entry"`            // temperature of soft_entry's minimum, in radians
	DirectPositives bool    `toml:"direct_positives" read:"direct"`        // a positive is never farther than its own angle
	LimitPi         float64 `toml:"limit_pi"`                              // paths are cut at this many pi, which becomes the score -1; 4 in the paper
	Temperature     float64 `toml:"temperature" read:"geodesic"`           // initial value of a temperature of its own; 0: that of objective.itc
	Mix             float64 `toml:"mix" read:"mix"`                        // with objective.itc.score = "geodesic" the score is mix*geodesic + (1-mix)*cosine
	Weigh           float64 `toml:"weigh" read:"contrast"`                 // of a cosine score: the logit of each entry is lowered by this times the teacher's geodesic score, so that negatives nearby on the manifold count less; 0: off
}

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

func (g *Geodesic) defaults() {
	*g = Geodesic{Layers: []int{16, 256}, Construction: "group", Neighbours: 8, Iterations: 5, KMeansInit: "plusplus",
		WarmStart: true, PeriodSteps: 100, Gradient: "same_cluster+straight_through+soft_entry", Entries: 8, Softness: 0.05, LimitPi: 4, Mix: 1}
}

// check includes what the graph needs of the rest, only where something reads it.
func (g *Geodesic) check(k *checker, c *Config) {
	k.OneOf("objective.geodesic.construction", "group", "split")
	k.OneOf("objective.geodesic.kmeans_init", "plusplus", "rows")
	k.OneOf("objective.geodesic.gradient", gradients...)
	k.Positive("objective.geodesic.neighbours", "objective.geodesic.iterations", "objective.geodesic.period_steps", "objective.geodesic.entries", "objective.geodesic.softness", "objective.geodesic.limit_pi")
	k.NotNegative("objective.geodesic.lag_steps", "objective.geodesic.temperature", "objective.geodesic.weigh")
	k.Require("objective.geodesic.mix", g.Mix > 0 && g.Mix <= 1, "must be above 0 and at most 1", `objective.itc.score = "cosine" switches the geodesic off`)
	k.Require("objective.geodesic.lag_steps", g.LagSteps < max(g.PeriodSteps, 1), "must be below objective.geodesic.period_steps", "one graph would not be ready when the next is begun")
	// Outside of these float32 has no room for what is computed from them.
	k.Require("objective.geodesic.limit_pi", g.LimitPi >= 0.01 && g.LimitPi <= 1000, "must be between 0.01 and 1000", "4 in the paper")
	k.Require("objective.geodesic.softness", g.Softness >= 1e-4 && g.Softness <= 100, "must be between 0.0001 and 100")
	k.Require("objective.geodesic.weigh", g.Weigh <= 1e4, "must be at most 10000")
	g.checkLayers(k)
	if i := c.Objective.ITC; g.Temperature > 0 {
		k.Require("objective.geodesic.temperature", g.Temperature >= c.LeastTemperature() && g.Temperature <= i.TemperatureMax,
			"must be 0 or lie between objective.itc.temperature_min and temperature_max")
	}
	k.Require("objective.geodesic.weigh", g.Weigh == 0 || !hasKind(c.Objective.ScoreTerms(), ScoreGeodesic), `must be 0 with a geodesic score`,
		"it weighs the negatives of another score")
	k.Require("objective.itc.target_score", c.Objective.ITC.TargetScore != "geodesic" || c.Objective.Distill.Alpha > 0 || hasKind(c.Objective.ScoreTerms(), ScoreGeodesic),
		"needs objective.distill.alpha > 0", "there are no soft targets without it")
	k.Require("objective.geodesic.weigh", g.Weigh == 0 || c.Model.traits().captions, "must be 0", c.Model.named()+" does not weigh negatives")
	if !c.Objective.UsesGraph() {
		return
	}
	const hint = "the geodesic needs the queue that its graph spans: or leave it out of the scores"
	k.Require("momentum.enabled", !c.lacksTeacher(), "must be true", hint)
	k.Require("queue.size", c.Queue.Size > 0, "must be > 0", hint)
	if n := len(g.Layers); n > 0 {
		k.Require("objective.geodesic.layers", c.Queue.Size == 0 || g.Layers[n-1] <= c.Queue.Size, "must not end in more clusters than queue.size",
			"use fewer clusters or a larger queue")
	}
	k.Require("objective.itc.weight", c.Objective.ITC.Weight > 0, "must be > 0", "the graph is read by the contrast with the queue")
}

// mostLayers is the largest number of layers of a graph.
const mostLayers = 16

func (g *Geodesic) checkLayers(k *checker) {
	layers := g.Layers
	k.Require("objective.geodesic.layers", len(layers) > 0, "must name at least the number of bottom centres", "such as [256]")
	k.Require("objective.geodesic.layers", len(layers) <= mostLayers, fmt.Sprintf("must name at most %d layers", mostLayers), "such as [16, 256]")
	k.Require("objective.geodesic.layers", !slices.ContainsFunc(layers, func(n int) bool { return n < 1 }), "must hold numbers > 0")
	for i := 1; i < len(layers); i++ {
		k.Require("objective.geodesic.layers", layers[i] > layers[i-1], "must grow from the top layer to the bottom one", "such as [16, 256]")
	}
}
