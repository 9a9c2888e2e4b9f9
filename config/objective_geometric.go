package config

import "fmt"

// Geometric is the regularisation of GeRA: the head keeps the geometry that the features
// of a tower have before it. Of stored features the neighbours are rows of a pool, found
// once; else they are sought in the queue, which then keeps the features before the head too.
type Geometric struct {
	Weight     float64 `toml:"weight" max:"1000000"`                       // alpha of GeRA, for each modality; 0: off
	Modalities string  `toml:"modalities" read:"geometric"`                // both | image | text
	Neighbours int     `toml:"neighbours" read:"geometric" max:"65536"`    // K, points of a neighbourhood, the anchor among them
	Pool       int     `toml:"pool" read:"geometric" max:"65536"`          // neighbours are sampled among the pool x K nearest entries of the queue, or rows of the pool of stored features
	Sampling   string  `toml:"sampling" read:"geometric"`                  // biased (nearer ones are likelier) | uniform | closest
	Anchor     bool    `toml:"anchor" read:"geometric pool"`               // the anchor is the first of the K points
	Search     string  `toml:"search" read:"geometric queue"`              // exact (all entries of the queue) | clusters (those of the nearest clusters of the graph over the queue, once there is one)
	Kernel     string  `toml:"kernel" read:"geometric"`                    // of two points: heat | linear | squared | inverse
	Epsilon    float64 `toml:"epsilon" read:"heat"`                        // width of the heat kernel, exp(-d^2/(4 epsilon))
	Scale      string  `toml:"scale" read:"geometric"`                     // of distances: unit (vectors are scaled to unit length) | relative (to the mean of the neighbourhood) | none
	Chunk      int     `toml:"chunk" read:"geometric pool" max:"16777216"` // rows of the pool that pass a head at a time, at least those of one anchor: fewer take less memory; 0: about 4096
}

// UsesGeometric says whether the objective regularises the geometry of a modality.
func (o Objective) UsesGeometric() bool { return o.Geometric.Weight > 0 }

// GeometricQueue says whether the term compares points that are found in the queue.
func (c Config) GeometricQueue() bool { return c.Objective.UsesGeometric() && !c.Model.Stored() }

// GeometricPool says whether the term compares points that samples name, rows of the pools
// of stored features.
func (c Config) GeometricPool() bool { return c.Objective.UsesGeometric() && c.Model.Stored() }

// Images says whether images have the term where it is on.
func (g Geometric) Images() bool { return g.Modalities != "text" }

// Texts says whether texts have the term where it is on.
func (g Geometric) Texts() bool { return g.Modalities != "image" }

// Near returns M, the nearest points that neighbours are sampled among.
func (g Geometric) Near() int { return g.Pool * g.Neighbours }

func (g *Geometric) defaults() {
	*g = Geometric{Modalities: "both", Neighbours: 16, Pool: 5, Sampling: "biased", Anchor: true, Search: "exact", Kernel: "heat", Epsilon: 0.8, Scale: "unit"}
}

// check includes what the term needs of the rest, only where it is on.
func (g *Geometric) check(k *checker, c *Config) {
	k.NotNegative("objective.geometric.weight")
	k.OneOf("objective.geometric.modalities", "both", "image", "text")
	k.OneOf("objective.geometric.sampling", "biased", "uniform", "closest")
	k.OneOf("objective.geometric.search", "exact", "clusters")
	k.OneOf("objective.geometric.kernel", "heat", "linear", "squared", "inverse")
	k.OneOf("objective.geometric.scale", "unit", "relative", "none")
	k.Require("objective.geometric.neighbours", g.Neighbours >= 2, "must be >= 2", "the anchor is one of them")
	k.Positive("objective.geometric.pool")
	k.Require("objective.geometric.epsilon", g.Epsilon >= 1e-4 && g.Epsilon <= 1e4, "must be between 0.0001 and 10000", "0.8 in the paper")
	k.NotNegative("objective.geometric.chunk")
	if !c.GeometricQueue() {
		return
	}
	if !c.Model.traits().captions { // whose queue and teacher are no remedy
		k.Require("objective.geometric.weight", false, "must be 0", c.Model.named()+" keeps no features before the head")
		return
	}
	const hint = "neighbours are found in a queue of the teacher's features: or set objective.geometric.weight = 0"
	k.Require("momentum.enabled", c.Momentum.Enabled, "must be true", hint)
	k.Require("queue.size", c.Queue.Size > 0, "must be > 0", hint)
	if c.Queue.Size > 0 && g.Neighbours > 0 { // by division: the product may overflow
		k.Require("objective.geometric.neighbours", g.Pool <= c.Queue.Size/g.Neighbours, "objective.geometric.pool times this must not be more than queue.size",
			fmt.Sprintf("the nearest %d x %d of the %d entries of the queue are wanted: use fewer, or a larger queue", g.Pool, g.Neighbours, c.Queue.Size))
	}
	k.Require("objective.geometric.search", g.Search == "exact" || c.Objective.UsesGraph(), `must be "exact" without a graph over the queue`,
		`its clusters are those of the geodesic, which no score that is trained has`)
}
