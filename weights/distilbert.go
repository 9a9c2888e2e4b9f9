package weights

// distilBERT is DistilBERT (Sanh et al. 2019) of Hugging Face: BERT without types of tokens.
var distilBERT = family{
	name:  "distilbert",
	types: []string{"distilbert"},
	parts: []part{{
		prefixes: []string{"distilbert.", ""},
		marks:    []string{"embeddings.LayerNorm.weight", "transformer.layer.0.attention.q_lin.weight"},
		needs: []rule{
			{"text/embeddings/word/weight", "embeddings.word_embeddings.weight", nil},
			{"text/embeddings/position/weight", "embeddings.position_embeddings.weight", nil},
			{"text/embeddings/norm/*", "embeddings.LayerNorm.*", nil},
			{"text/layers/#/attention/qkv/*", "transformer.layer.#.attention.{q_lin,k_lin,v_lin}.*", nil},
			{"text/layers/#/attention/output/*", "transformer.layer.#.attention.out_lin.*", nil},
			{"text/layers/#/attention/norm/*", "transformer.layer.#.sa_layer_norm.*", nil},
			{"text/layers/#/ffn/intermediate/*", "transformer.layer.#.ffn.lin1.*", nil},
			{"text/layers/#/ffn/output/*", "transformer.layer.#.ffn.lin2.*", nil},
			{"text/layers/#/ffn/norm/*", "transformer.layer.#.output_layer_norm.*", nil},
		},
		unneeded: []string{"embeddings.position_ids"},
	}, {
		prefixes: []string{""},
		marks:    []string{"vocab_transform.weight"},
		needs: []rule{
			{"text/mlm/dense/*", "vocab_transform.*", nil},
			{"text/mlm/norm/*", "vocab_layer_norm.*", nil},
			{"text/mlm/bias", "vocab_projector.bias", nil},
		},
		unneeded: []string{"vocab_projector.*"},
	}},
	unneeded: []string{"pre_classifier.*", "classifier.*", "qa_outputs.*"},
	describe: func(d *description) error {
		k := d.keys()
		d.config.HiddenAct = k.text("activation")
		for key, is := range map[string]*int{"dim": &d.config.HiddenSize, "n_layers": &d.config.Layers,
			"n_heads": &d.config.Heads, "hidden_dim": &d.config.Intermediate} {
			*is = k.whole(key)
		}
		if k.err != nil {
			return k.err
		}
		d.untied("vocab_projector.weight")
		return d.text(textFacts{style: "roberta", activation: "gelu", pool: "class", eps: 1e-5, heads: ofClass(d, 12),
			said: 1e-12})
	},
}
