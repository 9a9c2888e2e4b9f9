package encoders

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// RegionTower encodes an image that comes as features of its regions: a linear layer, what Hidden or Graph adds to
// it, and a pool. Its tokens are the regions.
//
//	x = fc(v)                     (VSE++, Faghri et al. 2018; SCAN, Lee et al. 2018)
//	x = fc(v) + fc2(relu(fc1(v))) with MLP (VSE-infinity, Chen et al. 2021); the bias of fc is that of both
//	x = graph(unit(fc(v)))        with Graph layers (VSRN, Li et al. 2019), see RegionGraph
//
// With BatchNorm there are the batch norms of the published code: fc1(v) is bn(fc1(v)), and with Graph layers there is
// one in each layer and one behind the pool.
type RegionTower struct {
	Regions int // R, most regions of an image
	In      int // D, features of a region
	Width   int
	MLP     bool
	Graph   RegionGraph // of no layers: none
	// BatchNorm: of the regions that an image has.
	BatchNorm bool
	Pool      Pool // PoolMean, PoolMax, PoolGPO, PoolESA or PoolGRU; empty: PoolMean
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
		misuse("regions", v, "want regions, features and a width of at least 1 (got %d, %d and %d)", t.Regions, t.In, t.Width)
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
		if t.BatchNorm && t.Graph.Layers > 0 {
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
	if t.BatchNorm {
		norm = &BatchNorm{Lengths: lengths, Len: t.Regions}
	}
	if t.MLP {
		h := linear(s, "fc1", torchLinear, v, t.Width/2)
		if norm != nil {
			h = norm.Of(c, s.In("bn1"), h)
		}
		x = arith.Add(x, linearNoBias(s, "fc2", torchLinear, nn.ReLU(h), t.Width))
	}
	if t.Graph.Layers > 0 {
		x = t.Graph.reason(c, s, nn.L2Normalize(x, centerEps), lengths, t.Regions, norm)
	}
	return x
}

// xavier starts a layer as the published code of VSE++ and its successors: weights uniform within
// sqrt(6/(in+out)), biases 0.
func xavier(out int) start {
	return func(in int) (Init, Init) { return Uniform(math.Sqrt(6 / float64(in+out))), Zeros }
}

// RegionGraph is reasoning over the graph of the regions of an image (VSRN, Li et al. 2019, equations 2 to 4): the
// regions pass Layers layers
//
//	x' = x + W (R g(x)),  R = theta(x) phi(x)^T / n
//
// with n the regions of the image and no softmax, after which they are brought to unit length. W and its bias start
// at 0, so that a layer starts as the identity. With a batch norm it is bn(W (R g(x))) whose weight starts at 0 instead. A metric compares theta(x) and phi(x) in the place of their product.
type RegionGraph struct {
	Layers int
	Metric Metric // its weights are those of each layer
}

// reason passes regions x (n*l, D) through the layers, with a batch norm of each or none: (n*l, D).
func (g RegionGraph) reason(c *Context, s Scope, x, lengths *gorgonia.Node, l int, norm *BatchNorm) *gorgonia.Node {
	d := columns("region graph", x)
	start := from(Zeros)
	if norm != nil {
		start = torchLinear
	}
	for i := range g.Layers {
		layer := s.Layer("graph", i)
		s.tap.tokens(i, x, l)
		s.block(func() {
			theta, phi, value := linear(layer, "theta", torchLinear, x, d), linear(layer, "phi", torchLinear, x, d), linear(layer, "g", torchLinear, x, d)
			phi = FoldTexts(phi, g.Metric.Weights(nil, layer, SimilaritySite))
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
