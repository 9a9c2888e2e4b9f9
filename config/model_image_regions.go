package config

// RegionTower is what an image tower of model.image.style = "regions" is besides model.image: images come as
// features of regions, of data.kind = "regions".
type RegionTower struct {
	In           int     `toml:"in" fixed:"model" max:"1048576"`                              // features of a region; 0: as many as the data has
	Encoder      string  `toml:"encoder" fixed:"model"`                                       // linear (VSE++, SCAN) | mlp (linear plus a network of one hidden layer, VSE-infinity) | graph (linear, then layers of reasoning over the graph of the regions, VSRN)
	BatchNorm    bool    `toml:"batch_norm" read:"region norms" fixed:"model"`                // the batch norms of the published code: behind the first layer of encoder "mlp", in each layer of "graph" and behind its pool; regions behind the last of an image take no part
	Layers       int     `toml:"layers" read:"region graph" fixed:"model" max:"128"`          // of reasoning of encoder "graph"
	Metric       string  `toml:"metric" read:"region graph" fixed:"model"`                    // how two regions of encoder "graph" are compared: empty or cosine (the product) | diag | block_diag | dense (the forms of objective.gssf.form, with weights of each layer)
	MetricBlocks int     `toml:"metric_blocks" read:"graph blocks" fixed:"model" max:"65536"` // of metric "block_diag", a divisor of model.image.width; 0: of 16 channels each
	Drop         float64 `toml:"drop" read:"steps" max:"1"`                                   // share of the regions that a training step leaves out at random, 0.2 in VSE-infinity; the teacher and evaluation see all
	Mask         float64 `toml:"mask" read:"masked regions" max:"1"`                          // share of the regions that each of two views of an image leaves out of the pool "esa" in a training step, 0.2 in ESA, for objective.hinge: a text shall be nearer to both views of its image than to those of others; 0: one view of all
}

// Values of model.image.regions.encoder.
const (
	RegionsLinear = "linear"
	RegionsMLP    = "mlp"
	RegionsGraph  = "graph"
)

func (r *RegionTower) defaults() { *r = RegionTower{Encoder: RegionsLinear, Layers: 4} }

func (r *RegionTower) check(k *checker, c *Config) {
	k.NotNegative("model.image.regions.in", "model.image.regions.layers", "model.image.regions.metric_blocks", "model.image.regions.drop", "model.image.regions.mask")
	if !c.ReadsRegions() {
		return
	}
	k.OneOf("model.image.regions.encoder", RegionsLinear, RegionsMLP, RegionsGraph)
	k.Require("model.image.style", c.Model.traits().interacts, `must not be "regions"`, c.Model.named()+` reads pixels: use model.system "clip" or "matching"`)
	k.Require("data.kind", c.Data.Kind == "regions", `must be "regions" with model.image.style "regions"`, "other kinds have no features of regions")
	k.Require("model.image.regions.drop", r.Drop < 1, "must be below 1")
	k.Require("model.image.regions.drop", r.Drop == 0 || !c.Data.CacheFeatures, "must be 0 with data.cache_features", "what is kept of an image is the same at every step")
	k.Require("model.image.regions.mask", r.Mask < 1, "must be below 1")
	if r.Mask > 0 && c.Model.Image.Pooling() == "esa" {
		const path = "model.image.regions.mask"
		k.Training(path, c.Objective.Hinge.Weight > 0 && !c.Model.Interacts(), "must be 0 without objective.hinge, or with model.interaction, which compare no views")
		k.Training(path, r.Drop == 0, "must be 0 with model.image.regions.drop", "set one of the two")
		k.Training(path, !c.AccumulatesFeatures() && !c.Data.CacheFeatures, `must be 0 with train.accumulate = "features" and data.cache_features`, "they keep one feature of an image")
	}
	k.Require("model.image.width", r.Encoder != RegionsMLP || c.Model.Image.Width%2 == 0, `must be even with model.image.regions.encoder "mlp"`, "its hidden layer is half as wide")
	if c.trainsNorms() {
		k.accumulates(c, "model.image.regions.batch_norm")
		k.Training("train.batch_size", c.Train.BatchSize != 1, "must be at least 2 with model.image.regions.batch_norm", "one row has no variance")
	}
	if r.Encoder != RegionsGraph {
		return
	}
	k.Positive("model.image.regions.layers")
	k.OneOfOrEmpty("model.image.regions.metric", "cosine", "diag", "block_diag", "dense")
	if r.Metric == "block_diag" {
		n := c.Model.Image.RegionBlocks()
		k.Require("model.image.regions.metric_blocks", n > 0 && c.Model.Image.Width%n == 0, "must divide model.image.width", "choose a divisor: the blocks have one size")
	}
}

// accumulates tells batch norms, which a key asks for, that pairs of several micro-batches are compared.
func (k *checker) accumulates(c *Config, key string) {
	k.Training("train.accumulate", !c.AccumulatesFeatures(), `must be "gradients" with `+key, "a batch norm would see one micro-batch at a time, and the pairs would not be those of one batch")
}

// trainsNorms says whether batch norms see the statistics of a batch in training.
func (c *Config) trainsNorms() bool {
	r := c.Model.Image.Regions
	return c.ReadsRegions() && r.BatchNorm && r.Encoder != RegionsLinear && !c.Model.Image.Freeze && !c.Model.Adapts()
}

// RegionBlocks returns the blocks of the metric between regions.
func (i Image) RegionBlocks() int {
	if n := i.Regions.MetricBlocks; n > 0 {
		return n
	}
	return i.Width / 16
}

// ReadsRegions says whether images are read as features of regions.
func (c *Config) ReadsRegions() bool { return !c.Model.Stored() && c.Model.Image.Style == StyleRegions }

// RegionWeights returns the weights of the matrices of a tower of regions and of its pool.
func (i Image) RegionWeights() float64 {
	in, w := float64(i.Regions.In), float64(i.Width)
	n := in * w
	switch i.Regions.Encoder {
	case RegionsMLP:
		n += (in + w) * w / 2
	case RegionsGraph:
		n += 4 * float64(i.Regions.Layers) * w * w
	}
	switch i.Pooling() {
	case "gru":
		n += 6 * w * w
	case "esa":
		n += w * w
	}
	return n
}
