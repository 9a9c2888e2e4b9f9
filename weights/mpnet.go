package weights

import "fmt"

// mpnet is MPNet (Song et al. 2020) of Hugging Face, whose layers share a bias of attention by distance.
var mpnet = family{
	name:  "mpnet",
	types: []string{"mpnet"},
	parts: []part{{
		prefixes: []string{"mpnet.", ""},
		marks:    []string{"encoder.relative_attention_bias.weight", "embeddings.word_embeddings.weight"},
		needs: []rule{
			{"text/embeddings/word/weight", "embeddings.word_embeddings.weight", nil},
			{"text/embeddings/position/weight", "embeddings.position_embeddings.weight", afterPadding},
			{"text/embeddings/norm/*", "embeddings.LayerNorm.*", nil},
			{"text/relative/weight", "encoder.relative_attention_bias.weight", matrix},
			{"text/layers/#/attention/qkv/*", "encoder.layer.#.attention.attn.{q,k,v}.*", nil},
			{"text/layers/#/attention/output/*", "encoder.layer.#.attention.attn.o.*", nil},
			{"text/layers/#/attention/norm/*", "encoder.layer.#.attention.LayerNorm.*", nil},
			{"text/layers/#/ffn/intermediate/*", "encoder.layer.#.intermediate.dense.*", nil},
			{"text/layers/#/ffn/output/*", "encoder.layer.#.output.dense.*", nil},
			{"text/layers/#/ffn/norm/*", "encoder.layer.#.output.LayerNorm.*", nil},
		},
		may:      []rule{pooler},
		unneeded: []string{"embeddings.position_ids"},
	}, lmHead},
	describe: func(d *description) error {
		if err := d.padding(); err != nil {
			return err
		}
		table := d.values["text/relative/weight"].shape
		if len(table) == 2 && table[0] != mpnetBuckets {
			return fmt.Errorf("its attention has a bias for %d buckets of distances, and %d are read", table[0],
				mpnetBuckets)
		}
		d.untied("lm_head.decoder.weight")
		return d.text(textFacts{style: "mpnet", activation: "gelu", pool: "class", eps: 1e-5, heads: ofClass(d, 12),
			said: ofClass(d, 1e-12)})
	},
}

// mpnetBuckets is the number of buckets of distances, half of them in each direction.
const mpnetBuckets = 32
