package encoders

import (
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// AttentionMetric is a learned metric inside the attention of a transformer (GSSF, section III-B): q^T (W o U) k in the
// place of the product q^T k of a query and a key, for each head on its d = D/H channels. W starts as the identity and
// is a parameter of each layer, gssf/weight below that of the attention. As q^T (W k) is the product of q with another key, W is folded into
// the keys, and attention itself knows nothing of it.
type AttentionMetric struct {
	Form   string // diag, block_diag or dense; empty or cosine: none
	Blocks int    // of block_diag, of a head
	Shared bool   // all heads of a layer have the same W
}

// metricAttentionSettings are the settings that shape it.
const metricAttentionSettings = "model.attention_metric.form, model.attention_metric.blocks and model.attention_metric.heads to those"

// metric is the form of W over the channels of a head, or of all heads.
func (m AttentionMetric) metric(width, heads int) Metric {
	x := Metric{Form: m.Form, Blocks: m.Blocks, Dim: width / heads}
	if m.Shared {
		return x
	}
	x.Dim, x.Blocks = width, m.Blocks*heads
	if m.Form == MetricDense {
		x.Form, x.Blocks = MetricBlockDiag, heads
	}
	return x
}

// fold returns rows x (R, E) whose width columns from the given one on are keys of some heads, with W applied to
// them. s is the scope of the attention. Where tuning locks the other parameters of the tower, W is trained.
func (m AttentionMetric) fold(s Scope, x *gorgonia.Node, from, width, heads int) *gorgonia.Node {
	if m.Form == "" || m.Form == MetricCosine {
		return x
	}
	if s.tuned != nil {
		s = s.added()
	}
	s.traits.Settings = metricAttentionSettings
	return similarity.FoldColumns(x, m.metric(width, heads).Weights(nil, s, SimilaritySite), from, width)
}
