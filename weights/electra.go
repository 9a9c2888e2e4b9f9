package weights

import "github.com/geoalign/geoalign/encoders"

// postLearned is BERT's block, with embeddings that may be narrower than layers.
func postLearned() encoders.Block {
	return encoders.Block{Order: encoders.OrderPost, Norm: encoders.NormLayer, Places: encoders.PlacesLearned}
}

// bertPairs are the names of BERT's layers as of those of style block.
var bertPairs = []string{
	"text/embeddings/norm", "embeddings.LayerNorm.*",
	"text/embeddings/project", "embeddings_project.*",
	"text/layers/#/attention/qkv", "encoder.layer.#.attention.self.{query,key,value}.*",
	"text/layers/#/attention/output", "encoder.layer.#.attention.output.dense.*",
	"text/layers/#/norm1", "encoder.layer.#.attention.output.LayerNorm.*",
	"text/layers/#/ffn/intermediate", "encoder.layer.#.intermediate.dense.*",
	"text/layers/#/ffn/output", "encoder.layer.#.output.dense.*",
	"text/layers/#/norm2", "encoder.layer.#.output.LayerNorm.*",
}

// learnedPositions is a table of positions as it is.
var learnedPositions = rule{"text/embeddings/position/weight", "embeddings.position_embeddings.weight", nil}

// electra is ELECTRA (Clark et al. 2020): BERT whose embeddings may be narrower than its layers.
var electra = family{
	name:  "electra",
	types: []string{"electra"},
	parts: []part{blockPart([]string{"electra.", ""}, "embeddings.word_embeddings.weight",
		[]rule{tokenType, learnedPositions}, bertPairs...)},
	unneeded: []string{"discriminator_predictions.*", "generator_predictions.*", "generator_lm_head.*", "classifier.*",
		"*embeddings.position_ids", "*embeddings.token_type_ids"},
	describe: func(d *description) error { return d.bertBlock("class", 1e-12) },
}

// bertBlock describes encoders with BERT's keys.
func (d *description) bertBlock(pool string, eps float64) error {
	k := d.keys()
	o := usualBlock(postLearned(), "gelu", eps, 512)
	o.pool = pool
	k.refuse("is_decoder", "encoders are read")
	k.absolute()
	if k.err != nil {
		return k.err
	}
	return d.block(o)
}

// ernie is ERNIE (Sun et al. 2020) of Hugging Face: BERT with a type of task, of which the first is added to all words.
var ernie = family{
	name:  "ernie",
	types: []string{"ernie"},
	parts: []part{blockPart([]string{"ernie.", ""}, "embeddings.word_embeddings.weight", []rule{tokenType, pooler,
		{"text/embeddings/position/weight", "embeddings.{position_embeddings,task_type_embeddings}.weight | embeddings.position_embeddings.weight", withFirst}},
		bertPairs...)},
	unneeded: []string{"cls.*", "*embeddings.position_ids", "*embeddings.token_type_ids"},
	describe: func(d *description) error { return d.bertBlock("class", 1e-12) },
}

// albert is ALBERT (Lan et al. 2020) of Hugging Face, whose layers share parameters.
var albert = family{
	name:  "albert",
	types: []string{"albert"},
	parts: []part{blockPart([]string{"albert.", ""}, "embeddings.word_embeddings.weight",
		[]rule{tokenType, learnedPositions, {"text/pooler/*", "pooler.*", nil}},
		"text/embeddings/norm", "embeddings.LayerNorm.*",
		"text/embeddings/project", "encoder.embedding_hidden_mapping_in.*",
		"text/layers/#/attention/qkv", albertLayer+"attention.{query,key,value}.*",
		"text/layers/#/attention/output", albertLayer+"attention.dense.*",
		"text/layers/#/norm1", albertLayer+"attention.LayerNorm.*",
		"text/layers/#/ffn/intermediate", albertLayer+"ffn.*",
		"text/layers/#/ffn/output", albertLayer+"ffn_output.*",
		"text/layers/#/norm2", albertLayer+"full_layer_layer_norm.*")},
	unneeded: []string{"predictions.*", "sop_classifier.*", "classifier.*", "*embeddings.position_ids"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(postLearned(), "gelu_tanh", 1e-12, 512)
		o.pool, o.Shared = "class", 1
		k.absolute()
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

const albertLayer = "encoder.albert_layer_groups.#.albert_layers.0."

// xlmRobertaXL is XLM-RoBERTa XL (Goyal et al. 2021) of Hugging Face: RoBERTa with its norms first.
var xlmRobertaXL = family{
	name:  "xlm-roberta-xl",
	types: []string{"xlm-roberta-xl"},
	parts: []part{blockPart([]string{"roberta.", ""}, "embeddings.word_embeddings.weight", []rule{pooler,
		{"text/embeddings/position/weight", "embeddings.{position,token_type}_embeddings.weight", afterPadding}},
		"text/layers/#/norm1", "encoder.layer.#.attention.self_attn_layer_norm.*",
		"text/layers/#/attention/qkv", "encoder.layer.#.attention.self.{query,key,value}.*",
		"text/layers/#/attention/output", "encoder.layer.#.attention.output.dense.*",
		"text/layers/#/norm2", "encoder.layer.#.LayerNorm.*",
		"text/layers/#/ffn/intermediate", "encoder.layer.#.intermediate.dense.*",
		"text/layers/#/ffn/output", "encoder.layer.#.output.dense.*",
		"text/norm", "encoder.LayerNorm.*")},
	unneeded: []string{"lm_head.*", "classifier.*", "*embeddings.position_ids", "*embeddings.token_type_ids"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPre, Norm: encoders.NormLayer,
			Places: encoders.PlacesLearned}, "gelu", 1e-5, 512)
		o.pool = "class"
		k.absolute()
		if k.err != nil {
			return k.err
		}
		if err := d.positionsAfter(); err != nil {
			return err
		}
		return d.block(o)
	},
}

// t5 is the encoder of T5 (Raffel et al. 2020) and of those with its names.
var t5 = family{
	name:  "t5",
	types: []string{"t5"},
	parts: []part{blockPart([]string{""}, "shared.weight | encoder.embed_tokens.weight", []rule{
		{"text/relative/weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", nil}},
		"text/layers/#/norm1", "encoder.block.#.layer.0.layer_norm.*",
		"text/layers/#/attention/qkv", "encoder.block.#.layer.0.SelfAttention.{q,k,v}.*",
		"text/layers/#/attention/output", "encoder.block.#.layer.0.SelfAttention.o.*",
		"text/layers/#/norm2", "encoder.block.#.layer.1.layer_norm.*",
		"text/layers/#/ffn/intermediate", "encoder.block.#.layer.1.DenseReluDense.{wi_0,wi_1}.* | encoder.block.#.layer.1.DenseReluDense.wi.*",
		"text/layers/#/ffn/output", "encoder.block.#.layer.1.DenseReluDense.wo.*",
		"text/norm", "encoder.final_layer_norm.*")},
	unneeded: []string{"decoder.*", "lm_head.*", "encoder.embed_tokens.weight"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPre, Norm: encoders.NormRoot, Places: encoders.PlacesBuckets,
			Scale: 1, Farthest: k.whole("relative_attention_max_distance")}, "relu", 1e-6, 512)
		o.width, o.layers, o.heads, o.mlp = []string{"d_model"}, []string{"num_layers"}, []string{"num_heads"},
			[]string{"d_ff"}
		o.act = []string{"dense_act_fn"}
		if k.text("dense_act_fn") == "" && k.text("feed_forward_proj") == "gated-gelu" {
			o.activation = "gelu_tanh"
		}
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}
