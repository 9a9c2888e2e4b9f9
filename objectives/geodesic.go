package objectives

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// Geodesic is the distance of GeoMM: the angle along the shortest path through a graph over the queue of each modality.
type Geodesic struct {
	// clusters of each layer, top first; the last number is K, the bottom centres: [256] is flat
	Layers []int `toml:"layers" max:"65536"`
	// group (k-means of the queue into K, whose centres are grouped upwards) | split (the clusters of the top layer are
	// split downwards)
	Construction string `toml:"construction" when:"layers>1"`
	// nearest centres that a centre has an edge to
	Neighbours int `toml:"neighbours" max:"65536"`
	// Lloyd iterations of k-means
	Iterations int `toml:"iterations" max:"1000"`
	// plusplus | rows (random entries of the queue)
	KMeansInit string `toml:"kmeans_init"`
	// k-means starts from the centres of the last graph
	WarmStart bool `toml:"warm_start"`
	// T0, steps between two rebuilds; the first is made when the queue is full, until then a geodesic is the cosine
	PeriodSteps int `toml:"period_steps" max:"1000000000"`
	// 0: a rebuild is part of its step; n: it runs beside the next n steps and is then switched in
	LagSteps int `toml:"lag_steps" max:"1000000000"`
	// strict (eq. 3 literally) or some of same_cluster, straight_through, soft_entry, joined by +
	Gradient string `toml:"gradient"`
	// centres that soft_entry may enter the graph by, all of them where there are fewer
	Entries int `toml:"entries" when:"gradient~soft_entry" max:"65536"`
	// temperature of soft_entry's minimum, in radians
	Softness float64 `toml:"softness" when:"gradient~soft_entry"`
	// a positive is never farther than its own angle
	DirectPositives bool `toml:"direct_positives" when:"momentum"`
	// paths are cut at this many pi, which becomes the score -1; 4 in the paper
	LimitPi float64 `toml:"limit_pi"`
	// initial value of a temperature of its own; 0: that of objective.itc
	Temperature float64 `toml:"temperature" when:"geodesic"`
	// with objective.itc.score = "geodesic" the score is mix*geodesic + (1-mix)*cosine
	Mix float64 `toml:"mix" when:"geodesic"`
	// of a cosine score: the logit of each entry is lowered by this times the teacher's geodesic score, so that
	// negatives nearby on the manifold count less; 0: off
	Weigh float64 `toml:"weigh" when:"objective.itc.weight>0"`
}

// gradients are the ways in which a gradient passes the geodesic score.
var gradients = []string{
	"strict", "same_cluster", "straight_through", "soft_entry",
	"same_cluster+straight_through", "same_cluster+soft_entry", "straight_through+soft_entry",
	"same_cluster+straight_through+soft_entry",
}

// Defaults implements section.Defaulter.
func (g *Geodesic) Defaults() {
	*g = Geodesic{Layers: []int{16, 256}, Construction: "group", Neighbours: 8, Iterations: 5, KMeansInit: "plusplus",
		WarmStart: true, PeriodSteps: 100, Gradient: "same_cluster+straight_through+soft_entry", Entries: 8,
		Softness: 0.05, LimitPi: 4, Mix: 1}
}

// Limit is the length at which paths are cut, in the unit of the local metric: on m spheres an angle is up to sqrt(m)
// pi, so that much more is a long path.
func (g *Geodesic) Limit(s space.Space) float64 {
	return g.LimitPi * math.Pi * math.Sqrt(float64(s.Spheres))
}

// Derives implements section.Deriver.
func (g *Geodesic) Derives(v *section.View) []section.Fact {
	l, soft := section.Of[ITC](v), section.Of[Distill](v).Alpha > 0
	switch {
	case l.Weight > 0 && (ScoreTerms(v).Has(scoring.Geodesic) || soft && TargetTerms(v).Has(scoring.Geodesic)),
		NegativeTerms(v).Has(scoring.Geodesic):
		return []section.Fact{section.Geodesic, section.Graph}
	case l.Weight > 0 && g.Weigh > 0:
		return []section.Fact{section.Graph}
	}
	return nil
}

// Check implements section.Checked: what the graph needs of the rest is told only where something reads it.
func (g *Geodesic) Check(k *section.Checker) {
	k.OneOf("construction", "group", "split")
	k.OneOf("kmeans_init", "plusplus", "rows")
	k.OneOf("gradient", gradients...)
	k.Positive("neighbours", "iterations", "period_steps", "entries", "softness", "limit_pi")
	k.NotNegative("lag_steps", "temperature", "weigh")
	k.Require("mix", g.Mix > 0 && g.Mix <= 1, "must be above 0 and at most 1",
		`objective.itc.score = "cosine" switches the geodesic off`)
	k.Require("lag_steps", g.LagSteps < max(g.PeriodSteps, 1), "must be below objective.geodesic.period_steps",
		"one graph would not be ready when the next is begun")
	// Outside of these float32 has no room for what is computed from them.
	k.Require("limit_pi", g.LimitPi >= 0.01 && g.LimitPi <= 1000, "must be between 0.01 and 1000", "4 in the paper")
	k.Require("softness", g.Softness >= 1e-4 && g.Softness <= 100, "must be between 0.0001 and 100")
	k.Require("weigh", g.Weigh <= 1e4, "must be at most 10000")
	g.checkLayers(k)
	l, scores := section.Of[ITC](k), ScoreTerms(k)
	if s, _ := headSpace(k); g.Temperature > 0 {
		k.Require("temperature", g.Temperature >= l.LeastTemperature(s) && g.Temperature <= l.TemperatureMax,
			"must be 0 or lie between objective.itc.temperature_min and temperature_max")
	}
	k.Require("weigh", g.Weigh == 0 || !scores.Has(scoring.Geodesic), `must be 0 with a geodesic score`,
		"it weighs the negatives of another score")
	k.Require("objective.itc.target_score", l.TargetScore != "geodesic" || section.Of[Distill](k).Alpha > 0 ||
		scores.Has(scoring.Geodesic), "needs objective.distill.alpha > 0", "there are no soft targets without it")
	k.Require("weigh", g.Weigh == 0 || k.Has(section.Captions), "must be 0", k.Named()+" does not weigh negatives")
	if !k.Has(section.Graph) {
		return
	}
	const hint = "the geodesic needs the queue that its graph spans: or leave it out of the scores"
	size := int(k.Number("queue.size"))
	k.Require("momentum.enabled", !lacksTeacher(k), "must be true", hint)
	k.Require("queue.size", size > 0, "must be > 0", hint)
	if n := len(g.Layers); n > 0 {
		k.Require("layers", size == 0 || g.Layers[n-1] <= size, "must not end in more clusters than queue.size",
			"use fewer clusters or a larger queue")
	}
	k.Require("objective.itc.weight", l.Weight > 0, "must be > 0", "the graph is read by the contrast with the queue")
}

// mostLayers is the largest number of layers of a graph.
const mostLayers = 16

func (g *Geodesic) checkLayers(k *section.Checker) {
	layers := g.Layers
	k.Require("layers", len(layers) > 0, "must name at least the number of bottom centres", "such as [256]")
	k.Require("layers", len(layers) <= mostLayers, fmt.Sprintf("must name at most %d layers", mostLayers),
		"such as [16, 256]")
	k.Require("layers", !slices.ContainsFunc(layers, func(n int) bool { return n < 1 }), "must hold numbers > 0")
	for i := 1; i < len(layers); i++ {
		k.Require("layers", layers[i] > layers[i-1], "must grow from the top layer to the bottom one",
			"such as [16, 256]")
	}
}

// Paths says how a geodesic is measured and how a gradient passes it.
type Paths struct {
	SameCluster     bool    // the direct angle between points of one cluster
	StraightThrough bool    // the gradient of the cosine
	Entries         int     // centres a point may enter the graph by, at most all: 1 is eq. 3, more are soft_entry
	Softness        float32 // temperature of the minimum over several entries, in the unit of the local metric
	DirectPositives bool    // a positive is never farther than its own angle
	Limit           float32 // length, in the unit of the local metric, at which a path is cut, the score -1
}

// ParsePaths returns the paths of a gradient mode as the configuration names it,
// "strict" or some of same_cluster, straight_through and soft_entry joined by +.
func ParsePaths(gradient string, entries int, softness, limit float64, directPositives bool) Paths {
	p := Paths{Entries: 1, Softness: float32(softness), DirectPositives: directPositives, Limit: float32(limit)}
	for _, mode := range strings.Split(gradient, "+") {
		switch mode {
		case "same_cluster":
			p.SameCluster = true
		case "straight_through":
			p.StraightThrough = true
		case "soft_entry":
			p.Entries = entries
		}
	}
	return p
}
