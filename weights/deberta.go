package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// debertaV2 is DeBERTa v3 (He et al. 2023), and v2 (He et al. 2021) where it has no convolution.
var debertaV2 = family{
	name:  "deberta-v2",
	types: []string{"deberta-v2"},
	parts: []part{func() part {
		p := blockPart([]string{"deberta.", ""}, "embeddings.word_embeddings.weight", []rule{tokenType,
			{"text/relative_norm/*", "encoder.LayerNorm.*", nil}, {"text/embeddings/project/weight", "embeddings.embed_proj.weight", nil}},
			"text/embeddings/norm", "embeddings.LayerNorm.*",
			"text/layers/#/attention/qkv", "encoder.layer.#.attention.self.{query_proj,key_proj,value_proj}.*",
			"text/layers/#/attention/output", "encoder.layer.#.attention.output.dense.*",
			"text/layers/#/norm1", "encoder.layer.#.attention.output.LayerNorm.*",
			"text/layers/#/ffn/intermediate", "encoder.layer.#.intermediate.dense.*",
			"text/layers/#/ffn/output", "encoder.layer.#.output.dense.*",
			"text/layers/#/norm2", "encoder.layer.#.output.LayerNorm.*")
		p.needs = append(p.needs, rule{"text/relative/weight", "encoder.rel_embeddings.weight", nil})
		p.unneeded = []string{"embeddings.position_ids"}
		return p
	}()},
	within:   []string{"encoder.conv."},
	unneeded: []string{"cls.*", "lm_predictions.*", "mask_predictions.*", "pooler.*", "classifier.*"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPost, Norm: encoders.NormLayer, Places: encoders.PlacesApart},
			"gelu", 1e-7, 512)
		o.pool = "class"
		odd := func(format string, args ...any) {
			k.err = errors.Join(k.err, fmt.Errorf("%s has "+format, append([]any{d.path}, args...)...))
		}
		if !k.yes("relative_attention") {
			odd("relative_attention = false, and scores of distances are read")
		}
		if !k.yes("share_att_key") {
			odd("share_att_key = false, and distances through the keys and queries of words are read")
		}
		if biased, said := keyOf[bool](k, "true or false", "position_biased_input"); biased || !said {
			odd("position_biased_input = true, and embeddings without positions are read (false)")
		}
		if n := k.whole("conv_kernel_size"); n > 0 {
			odd("conv_kernel_size = %d: the convolution beside the first layer is not read", n)
		}
		terms := k.termsOf("pos_att_type")
		if !slices.Equal(terms, []string{"c2p", "p2c"}) {
			odd("pos_att_type %q, and c2p with p2c is read", strings.Join(terms, "|"))
		}
		limit := k.number("max_relative_positions")
		if limit < 1 {
			limit = cmp.Or(k.number("max_position_embeddings"), 512)
		}
		o.Farthest = 0
		if k.number("position_buckets") > 0 {
			o.Farthest = int(limit)
		}
		if k.err != nil {
			return k.err
		}
		inner, err := d.size("text/layers/00/attention/output/weight", 1)
		if err != nil {
			return err
		}
		heads := cmp.Or(k.whole(o.heads...), 12)
		o.Scale = 1 / math.Sqrt(3*float64(inner/heads)) // of three terms
		return d.block(o)
	},
}

// termsOf are the parts of a list, or of one text with | between them, in the order of the alphabet.
func (k *keys) termsOf(name string) []string {
	var terms []string
	if text, ok := k.all[name].(string); ok {
		terms = strings.Split(strings.ToLower(text), "|")
	} else {
		terms = k.texts(name)
	}
	slices.Sort(terms)
	return terms
}
