package weights

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

// jinaV2 is jina-embeddings-v2 (Guenther et al. 2023) in the names of its repository: BERT with ALiBi and gated MLPs.
// Its config.json has BERT's model_type.
var jinaV2 = family{
	name:  "jina-v2",
	types: []string{"bert"},
	parts: []part{blockPart([]string{"", "bert."}, "embeddings.word_embeddings.weight", []rule{tokenType, pooler},
		"text/embeddings/norm", "embeddings.LayerNorm.*",
		"text/layers/#/attention/qkv", "encoder.layer.#.attention.self.{query,key,value}.*",
		"text/layers/#/attention/output", "encoder.layer.#.attention.output.dense.*",
		"text/layers/#/norm1", "encoder.layer.#.attention.output.LayerNorm.*",
		"text/layers/#/ffn/intermediate", "encoder.layer.#.mlp.gated_layers.*",
		"text/layers/#/ffn/output", "encoder.layer.#.mlp.wo.*",
		"text/layers/#/norm2", "encoder.layer.#.mlp.layernorm.*")},
	unneeded: []string{"embeddings.position_ids", "embeddings.token_type_ids", "cls.*"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPost, Norm: encoders.NormLayer,
			Places: encoders.PlacesLinear}, "gelu", 1e-12, 8192)
		if kind := k.text("position_embedding_type"); kind != "alibi" {
			k.err = errors.Join(k.err, fmt.Errorf("%s has position_embedding_type %q, and alibi is read with gated MLPs", d.path,
				cmp.Or(kind, "absolute")))
		}
		if kind := k.text("feed_forward_type"); kind != "" && kind != "geglu" {
			k.err = errors.Join(k.err, fmt.Errorf("%s has feed_forward_type %q, and geglu is read", d.path, kind))
		}
		o.act = nil // which gates are of, whatever hidden_act says
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}
