package encoders

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Metric is the form of a learned metric (GSSF): x^T (W o U) y in the place of the product of
// an image x and a text y, where U says which weights there are. W starts as the identity, so
// that the metric starts as the product.
//
// Wherever a model compares two rows is a site, with weights of its own.
type Metric struct {
	Form   string // cosine (W is the identity, fixed), diag, block_diag or dense; empty: cosine
	Blocks int    // of block_diag
	Dim    int    // C
}

// Sites.
const (
	SimilaritySite = ""          // the score of a pair
	AttentionSite  = "attention" // the products that the attention of one side to the other reads
)

// metricSettings are the settings that shape a metric.
const metricSettings = "model.head.topology, objective.gssf.form and objective.gssf.blocks to those"

// MetricName is the name of the weights of a site: gssf/weight or gssf/SITE/weight.
func MetricName(site string) string {
	if site == SimilaritySite {
		return "gssf/weight"
	}
	return "gssf/" + site + "/weight"
}

// Shape returns the shape of W: (C) for a diagonal, (N, d, d) for blocks, (C, C) for a dense
// one, nil for the cosine, which has none.
func (m Metric) Shape() []int {
	switch m.Form {
	case "diag":
		return []int{m.Dim}
	case "block_diag":
		return []int{m.Blocks, m.Dim / m.Blocks, m.Dim / m.Blocks}
	case "dense":
		return []int{m.Dim, m.Dim}
	}
	return nil
}

// Weights returns W of a site, nil for the cosine.
func (m Metric) Weights(s Scope, site string) *gorgonia.Node {
	shape := m.Shape()
	if shape == nil {
		return nil
	}
	s = s.As(Traits{Twin: true, Group: GroupMetric, Settings: metricSettings})
	return s.Param(MetricName(site), identity(shape), shape...)
}

// identity starts a diagonal, or square matrices, as the identity.
func identity(shape []int) Init {
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
