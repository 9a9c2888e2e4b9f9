package encoders

import (
	"cmp"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// RegionTower encodes an image that comes as features of its regions: a linear layer, what its encoder adds to
// it, and a pool. Its tokens are the regions.
//
//	x = fc(v)                     (VSE++, Faghri et al. 2018; SCAN, Lee et al. 2018)
//	x = fc(v) + fc2(relu(fc1(v))) with mlp (VSE-infinity, Chen et al. 2021); the bias of fc is that of both
//	x = graph(unit(fc(v)))        with graph layers (VSRN, Li et al. 2019), see reason
//
// With batch norms there are the batch norms of the published code: fc1(v) is bn(fc1(v)), and with graph layers
// there is one in each layer and one behind the pool.
type RegionTower struct {
	// features of a region; 0: as many as the data has
	In int `toml:"in" fixed:"model" max:"1048576"`
	// linear (VSE++, SCAN) | mlp (linear plus a network of one hidden layer, VSE-infinity) | graph (linear, then
	// layers of reasoning over the graph of the regions, VSRN)
	Encoder string `toml:"encoder" fixed:"model"`
	// the batch norms of the published code: behind the first layer of encoder "mlp", in each layer of "graph" and
	// behind its pool; regions behind the last of an image take no part
	BatchNorm bool `toml:"batch_norm" when:"encoder=mlp|graph" fixed:"model"`
	// of reasoning of encoder "graph"
	Layers int `toml:"layers" when:"encoder=graph" fixed:"model" max:"128"`
	// how two regions of encoder "graph" are compared: empty or cosine (the product) | diag | block_diag | dense (the
	// forms of objective.gssf.form, with weights of each layer)
	Metric string `toml:"metric" when:"encoder=graph" fixed:"model"`
	// of metric "block_diag", a divisor of model.image.width; 0: of 16 channels each
	MetricBlocks int `toml:"metric_blocks" when:"encoder=graph and metric=block_diag" fixed:"model" max:"65536"`
	// share of the regions that a training step leaves out at random, 0.2 in VSE-infinity; the teacher and evaluation
	// see all
	Drop float64 `toml:"drop" when:"steps" max:"1"`
	// share of the regions that each of two views of an image leaves out of the pool "esa" in a training step, 0.2 in
	// ESA, for objective.hinge: a text shall be nearer to both views of its image than to those of others; 0: one view
	// of all
	Mask float64 `toml:"mask" when:"model.image.pool=esa" max:"1"`

	Regions int `toml:"-"` // R, most regions of an image
	Width   int `toml:"-"`
	// Pool is PoolMean, PoolMax, PoolGPO, PoolESA or PoolGRU; empty: PoolMean.
	Pool Pool `toml:"-"`
}

// Encoders of regions.
const (
	RegionsLinear = "linear"
	RegionsMLP    = "mlp"
	RegionsGraph  = "graph"
)

// Defaults implements section.Defaulter.
func (t *RegionTower) Defaults() { *t = RegionTower{Encoder: RegionsLinear, Layers: 4} }

// Check implements section.Checked.
func (t *RegionTower) Check(k *section.Checker) {
	k.NotNegative("in", "layers", "metric_blocks", "drop", "mask")
	if !k.Has(section.Regions) {
		return
	}
	image := section.Of[ImageOptions](k)
	k.OneOf("encoder", RegionsLinear, RegionsMLP, RegionsGraph)
	k.Require("model.image.style", k.Has(section.Interacts), `must not be "regions"`,
		k.Named()+` reads pixels: use model.system "clip" or "matching"`)
	k.Require("data.kind", k.Value("data.kind") == "regions", `must be "regions" with model.image.style "regions"`,
		"other kinds have no features of regions")
	keeps := k.Value("data.cache_features") == true
	k.Require("drop", t.Drop < 1, "must be below 1")
	k.Require("drop", t.Drop == 0 || !keeps, "must be 0 with data.cache_features",
		"what is kept of an image is the same at every step")
	k.Require("mask", t.Mask < 1, "must be below 1")
	if t.Mask > 0 && image.Pooling() == "esa" {
		k.Training("mask", k.Number("objective.hinge.weight") > 0 && k.Has(section.Features),
			"must be 0 without objective.hinge, or with model.interaction, which compare no views")
		k.Training("mask", t.Drop == 0, "must be 0 with model.image.regions.drop", "set one of the two")
		k.Training("mask", !k.Has(section.FeatureBatches) && !keeps,
			`must be 0 with train.accumulate = "features" and data.cache_features`, "they keep one feature of an image")
	}
	k.Require("model.image.width", t.Encoder != RegionsMLP || image.Width%2 == 0,
		`must be even with model.image.regions.encoder "mlp"`, "its hidden layer is half as wide")
	if k.Has(section.RegionNorms) && !k.Has(section.Adapters) {
		oneBatch(k, "model.image.regions.batch_norm")
		k.Training("train.batch_size", k.Number("train.batch_size") != 1,
			"must be at least 2 with model.image.regions.batch_norm", "one row has no variance")
	}
	if t.Encoder != RegionsGraph {
		return
	}
	k.Positive("layers")
	k.OneOfOrEmpty("metric", MetricCosine, MetricDiag, MetricBlockDiag, MetricDense)
	if t.Metric == MetricBlockDiag {
		n := cmp.Or(t.MetricBlocks, image.Width/16)
		k.Require("metric_blocks", n > 0 && image.Width%n == 0, "must divide model.image.width",
			"choose a divisor: the blocks have one size")
	}
}

// normed says whether there are batch norms.
func (t RegionTower) normed() bool {
	return t.BatchNorm && t.Encoder != "" && t.Encoder != RegionsLinear
}

// Reasons returns the layers of the graph over regions, 0 where the encoder is another.
func (t RegionTower) Reasons() int {
	if t.Encoder != RegionsGraph {
		return 0
	}
	return t.Layers
}

// regionWeights counts the weights of the matrices of a tower of regions and of its pool.
func (i ImageOptions) regionWeights() int64 {
	in, w := int64(i.Regions.In), int64(i.Width)
	n := in * w
	switch i.Regions.Encoder {
	case RegionsMLP:
		n += (in + w) * w / 2
	case RegionsGraph:
		n += 4 * int64(i.Regions.Layers) * w * w
	}
	switch i.Pooling() {
	case "gru":
		n += 6 * w * w
	case "esa":
		n += w * w
	}
	return n
}

var _ Tower = RegionTower{}

// Columns are the features of the regions, (R, D), and how many regions there are.
func (t RegionTower) Columns() []batch.Column {
	return []batch.Column{
		{Name: batch.Regions, Shape: []int{t.Regions, t.In}},
		{Name: batch.RegionLengths, Type: batch.Int32},
	}
}

// Classes returns 1.
func (t RegionTower) Classes() int { return 1 }

// Shape returns the regions of an image and their width.
func (t RegionTower) Shape() (length, width int) { return t.Regions, t.Width }

// Encode encodes n images. Where the context leaves regions out, those that are kept come first.
func (t RegionTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	v, lengths := in[batch.Regions], in[batch.RegionLengths]
	if t.Regions < 1 || t.In < 1 || t.Width < 1 {
		misuse("regions", v, "want regions, features and a width of at least 1 (got %d, %d and %d)", t.Regions, t.In,
			t.Width)
	}
	n := v.Shape()[0]
	v = layout.Reshape(v, n*t.Regions, t.In) // (n*R, D)
	if c.Regions != nil {
		var rows *gorgonia.Node
		rows, lengths = c.Regions(n, t.Regions)
		v = nn.GatherRows(v, rows, 1)
	}
	q := Sequence{Tokens: t.regions(c, s, v, lengths), Lengths: lengths, Len: t.Regions, Width: t.Width}
	if want.Classes {
		pool := t.Pool
		if pool == "" {
			pool = PoolMean
		}
		if x := s.tap.pooled(q.Tokens, q.Len); pool == PoolESA && c.Masks != nil {
			q.Classes, q.Second = esaViews(c, s, x, q.Len)
		} else {
			q.Classes = pool.of(s, x, lengths, q.Len) // (n, width)
		}
		if t.normed() && t.Reasons() > 0 {
			q.Classes = BatchNorm{}.Of(c, s.In("bn"), q.Classes)
		}
	}
	if !want.Tokens {
		q.Tokens = nil
	}
	return q
}

// regions encodes the regions v (n*R, D): (n*R, width).
func (t RegionTower) regions(c *Context, s Scope, v, lengths *gorgonia.Node) *gorgonia.Node {
	x := linear(s, "fc", xavier(t.Width), v, t.Width)
	var norm *BatchNorm
	if t.normed() {
		norm = &BatchNorm{Lengths: lengths, Len: t.Regions}
	}
	if t.Encoder == RegionsMLP {
		h := linear(s, "fc1", torchLinear, v, t.Width/2)
		if norm != nil {
			h = norm.Of(c, s.In("bn1"), h)
		}
		x = arith.Add(x, linearNoBias(s, "fc2", torchLinear, nn.ReLU(h), t.Width))
	}
	if t.Reasons() > 0 {
		x = t.reason(c, s, nn.L2Normalize(x, centerEps), lengths, t.Regions, norm)
	}
	return x
}

// xavier starts a layer as the published code of VSE++ and its successors: weights uniform within
// sqrt(6/(in+out)), biases 0.
func xavier(out int) start {
	return func(in int) (Init, Init) { return Uniform(math.Sqrt(6 / float64(in+out))), Zeros }
}

// reason passes regions x (n*l, D) through reasoning over the graph of the regions of an image (VSRN, Li et al. 2019,
// equations 2 to 4), layers
//
//	x' = x + W (R g(x)),  R = theta(x) phi(x)^T / n
//
// with n the regions of the image and no softmax, after which they are brought to unit length: (n*l, D). W and its bias
// start at 0, so that a layer starts as the identity. With a batch norm it is bn(W (R g(x))) whose weight starts at 0
// instead. A metric, with weights of each layer, compares theta(x) and phi(x) in the place of their product.
func (t RegionTower) reason(c *Context, s Scope, x, lengths *gorgonia.Node, l int, norm *BatchNorm) *gorgonia.Node {
	metric := Metric{Form: t.Metric, Blocks: cmp.Or(t.MetricBlocks, t.Width/16), Dim: t.Width}
	d := columns("region graph", x)
	start := from(Zeros)
	if norm != nil {
		start = torchLinear
	}
	for i := range t.Layers {
		layer := s.Layer("graph", i)
		s.tap.tokens(i, x, l)
		s.block(func() {
			theta, phi, value := linear(layer, "theta", torchLinear, x, d), linear(layer, "phi", torchLinear, x, d),
				linear(layer, "g", torchLinear, x, d)
			phi = FoldTexts(phi, metric.Weights(nil, layer, SimilaritySite))
			y := attention.Affinity(theta, phi, value, lengths, l)
			y = linear(layer, "w", start, y, d)
			if norm != nil {
				y = BatchNorm{Lengths: norm.Lengths, Len: norm.Len, Weight: Zeros}.Of(c, layer.In("bn"), y)
			}
			x = arith.Add(x, y) // (n*l, D)
		})
	}
	return nn.L2Normalize(x, centerEps)
}
