package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// AttentionMetric puts a learned metric into the attention of transformers (GSSF): q^T (W o U) k in the place of the
// product q^T k of a query and a key, in each head. W starts as the identity, with weights of each layer.
type AttentionMetric struct {
	Form   string   `toml:"form" fixed:"model"`                                       // empty (the product) | diag (one weight for each channel of a head) | block_diag (weights within blocks of channels of a head) | dense (all of a head)
	Blocks int      `toml:"blocks" read:"attention blocks" fixed:"model" max:"65536"` // of block_diag, blocks of a head, a divisor of its channels; 0: of 16 channels each, or one where a head has fewer
	Heads  string   `toml:"heads" read:"attention metric" fixed:"model"`              // own (weights of each head) | shared (the heads of a layer have the same)
	Where  []string `toml:"where" read:"attention metric" fixed:"model"`              // image (self-attention of the image tower) | text (self-attention of the text tower, fusion layers included) | fusion (from texts to images in fusion layers); empty: all that the model has
}

// Places of attention, and whose weights they are.
const (
	AttendImage  = "image"
	AttendText   = "text"
	AttendFusion = "fusion"

	AttendOwn    = "own"
	AttendShared = "shared"
)

func (a *AttentionMetric) defaults() { *a = AttentionMetric{Heads: AttendOwn} }

// At says whether attention at a place has a metric, if the model has the place.
func (a AttentionMetric) At(where string) bool {
	return a.Form != "" && (len(a.Where) == 0 || slices.Contains(a.Where, where))
}

// HeadBlocks returns the blocks of a head of so many channels.
func (a AttentionMetric) HeadBlocks(channels int) int { return cmp.Or(a.Blocks, max(1, channels/16)) }

// Attends returns the width and the heads of the attention at a place, 0 where the model has none.
func (m Model) Attends(where string) (width, heads int) {
	switch t := m.traits(); {
	case t.stored:
	case where == AttendImage && m.Image.Transforms():
		return m.Image.Width, m.Image.Heads
	case where == AttendText && t.words && m.Text.Style != StyleGRU, where == AttendFusion && t.fusion && m.Text.FusionLayers > 0:
		return m.Text.Width, m.Text.Heads
	}
	return 0, 0
}

func (a *AttentionMetric) check(k *checker, c *Config) {
	const path = "model.attention_metric."
	places := []string{AttendImage, AttendText, AttendFusion}
	k.OneOfOrEmpty(path+"form", "diag", "block_diag", "dense")
	k.OneOf(path+"heads", AttendOwn, AttendShared)
	k.NotNegative(path + "blocks")
	for _, where := range a.Where {
		k.Require(path+"where", slices.Contains(places, where), "must be some of "+strings.Join(places, ", "))
	}
	some := false
	for _, where := range places {
		width, heads := c.Model.Attends(where)
		named := a.Form != "" && slices.Contains(a.Where, where)
		k.Require(path+"where", !named || width > 0, "must not have "+where, c.Model.named()+" has no such attention with these towers")
		if !a.At(where) || width < 1 || heads < 1 {
			continue
		}
		some = true
		channels := width / heads
		n := a.HeadBlocks(channels)
		k.Require(path+"blocks", a.Form != "block_diag" || channels%n == 0, fmt.Sprintf("must divide the channels of a head (%d of %s)", channels, where), "choose a divisor: the blocks have one size")
		frozen := where == AttendImage && c.Model.Image.Freeze || where == AttendText && c.Model.Text.Freeze
		k.Training(path+"where", !frozen, "must not have "+where+" with a frozen tower", "its metric would stay the identity: list other places in where, or use model.lora in the place of model."+where+".freeze")
	}
	k.Require(path+"form", a.Form == "" || c.Model.Stored() || some, "must be empty", "the model has no attention of a transformer")
}
