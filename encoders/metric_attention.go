package encoders

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// AttentionMetric is a learned metric inside the attention of a transformer (GSSF, section III-B): q^T (W o U) k in the
// place of the product q^T k of a query and a key, for each head on its d = D/H channels.
// W starts as the identity, with weights of each layer.
//
// It is a parameter, gssf/weight below that of the attention. As q^T (W k) is the product of q with another key, W
// is folded into the keys, and attention itself knows nothing of it.
type AttentionMetric struct {
	// empty (the product) | diag (one weight for each channel of a head) | block_diag (weights within blocks of
	// channels of a head) | dense (all of a head)
	Form string `toml:"form" fixed:"model"`
	// of block_diag, blocks of a head, a divisor of its channels; 0: of 16 channels each, or one where a head has
	// fewer
	Blocks int `toml:"blocks" when:"form=block_diag" fixed:"model" max:"65536"`
	// own (weights of each head) | shared (the heads of a layer have the same)
	Heads string `toml:"heads" when:"form" fixed:"model"`
	// image (self-attention of the image tower) | text (self-attention of the text tower, fusion layers included) |
	// fusion (from texts to images in fusion layers); empty: all that the model has
	Where []string `toml:"where" when:"form" fixed:"model"`
}

// Places of attention.
const (
	AttendImage  = "image"
	AttendText   = "text"
	AttendFusion = "fusion"
)

// attendShared is the value of AttentionMetric.Heads of one metric for all heads.
const attendShared = "shared"

// Defaults implements section.Defaulter.
func (m *AttentionMetric) Defaults() { *m = AttentionMetric{Heads: "own"} }

// at returns the metric of a place, the zero value where there is none.
func (m AttentionMetric) at(where string) AttentionMetric {
	if m.Form == "" || len(m.Where) > 0 && !slices.Contains(m.Where, where) {
		return AttentionMetric{}
	}
	return m
}

// headBlocks returns the blocks of a head of so many channels.
func (m AttentionMetric) headBlocks(channels int) int { return cmp.Or(m.Blocks, max(1, channels/16)) }

// Check implements section.Checked.
func (m *AttentionMetric) Check(k *section.Checker) {
	places := []string{AttendImage, AttendText, AttendFusion}
	k.OneOfOrEmpty("form", MetricDiag, MetricBlockDiag, MetricDense)
	k.OneOf("heads", "own", attendShared)
	k.NotNegative("blocks")
	for _, where := range m.Where {
		k.Require("where", slices.Contains(places, where), "must be some of "+strings.Join(places, ", "))
	}
	image, text := section.Of[ImageOptions](k), section.Of[TextOptions](k)
	some := false
	for _, where := range places {
		width, heads, frozen, has := text.Width, text.Heads, where == AttendText && text.Freeze,
			k.Has(section.WordAttention)
		switch where {
		case AttendImage:
			width, heads, frozen, has = image.Width, image.Heads, image.Freeze, k.Has(section.Patches)
		case AttendFusion:
			has = k.Has(section.Fusion) && text.FusionLayers > 0
		}
		named := m.Form != "" && slices.Contains(m.Where, where)
		k.Require("where", !named || has && width > 0, "must not have "+where,
			k.Named()+" has no such attention with these towers")
		if m.at(where).Form == "" || !has || width < 1 || heads < 1 {
			continue
		}
		some = true
		channels := width / heads
		k.Require("blocks", m.Form != MetricBlockDiag || channels%m.headBlocks(channels) == 0,
			fmt.Sprintf("must divide the channels of a head (%d of %s)", channels, where),
			"choose a divisor: the blocks have one size")
		k.Training("where", !frozen, "must not have "+where+" with a frozen tower",
			"its metric would stay the identity: list other places in where, or use model.lora in the place of model."+
				where+".freeze")
	}
	k.Require("form", m.Form == "" || !k.Has(section.Towers) || some, "must be empty",
		"the model has no attention of a transformer")
}

// metricAttentionSettings are the settings that shape it.
const metricAttentionSettings = "model.attention_metric.form, model.attention_metric.blocks and model.attention_metric.heads to those"

// metric is the form of W over the channels of a head, or of all heads.
func (m AttentionMetric) metric(width, heads int) Metric {
	x := Metric{Form: m.Form, Blocks: m.headBlocks(width / heads), Dim: width / heads}
	if m.Heads == attendShared {
		return x
	}
	x.Dim, x.Blocks = width, x.Blocks*heads
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
