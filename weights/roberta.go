package weights

// roberta is RoBERTa (Liu et al. 2019) and XLM-RoBERTa of Hugging Face. Its only token type is added to the
// positions.
var roberta = family{
	name:  "roberta",
	types: []string{"roberta", "xlm-roberta", "camembert"},
	parts: []part{robertaText("roberta.", ""), lmHead},
	describe: func(d *description) error {
		if err := d.positionsAfter(); err != nil {
			return err
		}
		d.untied("lm_head.decoder.weight")
		return d.text(textFacts{style: "roberta", activation: "gelu", pool: "class", eps: 1e-5, heads: ofClass(d, 12),
			said: ofClass(d, 1e-12)})
	},
}

// robertaText is the tensors of a RoBERTa below one of the prefixes.
func robertaText(prefixes ...string) part {
	return part{
		prefixes: prefixes,
		marks:    []string{"embeddings.LayerNorm.weight", "embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight"},
		needs: append([]rule{
			{"text/embeddings/word/weight", "embeddings.word_embeddings.weight", nil},
			{"text/embeddings/position/weight", "embeddings.{position,token_type}_embeddings.weight", afterPadding},
		}, bertLayers...),
		may:      []rule{pooler},
		unneeded: []string{"embeddings.position_ids", "embeddings.token_type_ids"},
	}
}

// lmHead is the head of masked language modelling of RoBERTa and MPNet.
var lmHead = part{
	prefixes: []string{""},
	marks:    []string{"lm_head.dense.weight"},
	needs: []rule{
		{"text/mlm/dense/*", "lm_head.dense.*", nil},
		{"text/mlm/norm/*", "lm_head.layer_norm.*", nil},
		{"text/mlm/bias", "lm_head.bias | lm_head.decoder.bias", nil},
	},
	unneeded: []string{"lm_head.decoder.*"},
}
