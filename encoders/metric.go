package encoders

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Forms of a learned metric.
const (
	MetricCosine    = "cosine"
	MetricDiag      = "diag"
	MetricBlockDiag = "block_diag"
	MetricDense     = "dense"
	MetricSparse    = "sparse"
	MetricLowRank   = "low_rank"
	MetricMLP       = "mlp"
)

// Metric is the form of a learned metric (GSSF): x^T (W o U) y in the place of the product of
// an image x and a text y, where U says which weights there are. W starts as the identity, so
// that the metric starts as the product.
//
//	cosine      W = I, fixed; so is the empty form
//	diag        a weight for each channel
//	block_diag  Blocks blocks of channels
//	dense       all weights
//	sparse      all weights, with Pull.L1
//	low_rank    W = L^T R with L, R (Rank, C), which start as the first rows of the identity
//	mlp         see PairNet
//
// Wherever a model compares two rows is a site, with weights of its own.
type Metric struct {
	Form      string
	Blocks    int // of block_diag
	Dim       int // C
	Rank      int // of low_rank
	Symmetric bool
	Random    bool    // W starts with uniform numbers of variance one over the weights of a row, not as the identity
	Hidden    int     // of mlp: width of the hidden layer
	Dropout   float64 // share of W that a training step leaves out
	Pull      Pull    // of W; Side follows from the form
}

// Sites.
const (
	SimilaritySite = ""          // the score of a pair
	AttentionSite  = "attention" // the products that the attention of one side to the other reads
)

// metricSettings are the settings that shape a metric.
const metricSettings = "model.head.topology, objective.gssf.form, objective.gssf.blocks, objective.gssf.rank and objective.gssf.hidden to those"

// MetricName is the name of the weights of a site: gssf/weight or gssf/SITE/weight.
func MetricName(site string) string { return metricPath(site) + "weight" }

// metricPath is the path of the parameters of a site.
func metricPath(site string) string {
	if site == SimilaritySite {
		return "gssf/"
	}
	return "gssf/" + site + "/"
}

// Shape returns the shape of W where it is a parameter: (C) for a diagonal, (N, d, d) for blocks, (C, C) for a
// dense one, else nil.
func (m Metric) Shape() []int {
	switch m.Form {
	case MetricDiag:
		return []int{m.Dim}
	case MetricBlockDiag:
		return []int{m.Blocks, m.Dim / m.Blocks, m.Dim / m.Blocks}
	case MetricDense, MetricSparse:
		return []int{m.Dim, m.Dim}
	}
	return nil
}

// MetricParam is a parameter of a metric.
type MetricParam struct {
	Name  string
	Shape []int
}

// Params are the parameters of a site, in the order in which they make it up: W, or L and R (L alone where they are
// one), or A, B, b and v of a PairNet. The cosine has none.
func (m Metric) Params(site string) (list []MetricParam) {
	add := func(name string, shape ...int) { list = append(list, MetricParam{metricPath(site) + name, shape}) }
	switch m.Form {
	case MetricLowRank:
		add("left", m.Rank, m.Dim)
		if !m.Symmetric {
			add("right", m.Rank, m.Dim)
		}
	case MetricMLP:
		add("hidden/product", m.Hidden, m.Dim)
		add("hidden/difference", m.Hidden, m.Dim)
		add("hidden/bias", m.Hidden)
		add("output/weight", m.Hidden)
	default:
		if shape := m.Shape(); shape != nil {
			add("weight", shape...)
		}
	}
	return list
}

// scope is that of the parameters of a metric.
func (m Metric) scope(s Scope) Scope {
	if s.traits.Settings == "" {
		s.traits.Settings = metricSettings
	}
	return s.As(Traits{Momentum: true, Group: GroupMetric})
}

// Weights returns W of a site: (C), (N, d, d) or (C, C); nil for the cosine and for mlp, which has none. Where the
// context has dropout, a share of W is left out, the same wherever a step asks for the site; c may be nil.
func (m Metric) Weights(c *Context, s Scope, site string) *gorgonia.Node {
	s = m.scope(s)
	path := metricPath(site)
	if m.Form == MetricLowRank {
		left := s.Param(path+"left", identity(m.Rank, m.Dim), m.Rank, m.Dim)
		right := left
		if !m.Symmetric {
			right = s.Param(path+"right", identity(m.Rank, m.Dim), m.Rank, m.Dim)
		}
		return nn.Linear(layout.Transpose(left), layout.Transpose(right), nil) // (C, C)
	}
	shape := m.Shape()
	if shape == nil {
		return nil
	}
	start, side := Const(1), 1
	if len(shape) > 1 {
		start, side = identity(shape...), shape[len(shape)-1]
	}
	if m.Random {
		start = Uniform(math.Sqrt(3 / float64(side)))
	}
	if m.Pull != (Pull{}) {
		pull := m.Pull
		pull.Side = side
		s = s.As(Traits{Pull: pull})
	}
	w := s.Param(path+"weight", start, shape...)
	if c == nil || c.DropoutKey == nil || m.Dropout == 0 || m.Form != MetricDense {
		return w
	}
	at := metricSites
	if site != SimilaritySite {
		at++
	}
	return nn.Dropout(w, nn.DropoutBits(c.DropoutKey, at, m.Dim, m.Dim, keep(m.Dropout)), keep(m.Dropout))
}

// metricSites are the dropout places of metrics, behind those of all towers.
const metricSites uint64 = 1 << 20

// identity starts square matrices (N, d, d) or (d, d) as the identity, (r, d) as its first rows and a diagonal (d) as
// ones.
func identity(shape ...int) Init {
	if len(shape) == 1 {
		return Const(1)
	}
	d := shape[len(shape)-1]
	return func(_ *rand.Rand, dst []float32) {
		clear(dst)
		for i := 0; i < len(dst); i += d {
			dst[i+i/d%d] = 1
		}
	}
}

// FoldImages returns rows x (R, C) of images such that their products with texts y are
// x^T W y: W^T x. Without W they are x.
func FoldImages(x, w *gorgonia.Node) *gorgonia.Node { return applyMetric(x, w, true) }

// FoldTexts does the same for texts, whose products are with images: W y.
func FoldTexts(y, w *gorgonia.Node) *gorgonia.Node { return applyMetric(y, w, false) }

func applyMetric(x, w *gorgonia.Node, transposed bool) *gorgonia.Node {
	switch {
	case w == nil:
		return x
	case len(w.Shape()) == 1:
		return similarity.Diagonal(x, w)
	}
	return similarity.BlockDiagonal(x, w, transposed)
}
