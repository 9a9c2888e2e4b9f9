package weights

import (
	"errors"
	"slices"
)

// bert is BERT (Devlin et al. 2019) and what has its tensors, such as MiniLM, of Hugging Face, with or without
// its heads.
var bert = family{
	name:  "bert",
	types: []string{"bert"},
	parts: []part{bertText("bert.", ""), bertMLM("")},
	describe: func(d *description) error {
		if types := d.values["text/embeddings/token_type/weight"].shape; !d.named && len(d.kinds()) == 0 &&
			len(types) > 0 && types[0] == 1 {
			d.note(`no file says whether it is of family bert or roberta, whose tensors have the same names: it is read as bert, and has one token type, as RoBERTa has, whose positions begin elsewhere: name the family (init.text.family = "roberta", or --family with import)`)
		}
		d.untied("cls.predictions.decoder.weight")
		style, err := d.tokenTypes()
		if err != nil {
			return err
		}
		return d.text(textFacts{style: style, activation: "gelu", pool: "class", eps: styleEps[style],
			heads: ofClass(d, 12), said: 1e-12})
	},
}

// styleEps is the epsilon of the layer norms of a style.
var styleEps = map[string]float64{"bert": 1e-12, "roberta": 1e-5}

// tokenTypes brings the table of types of tokens to the two that style bert has, and returns the style. Of more rows the
// first two are what texts and pairs of them have. One row alone is added to the positions, in style roberta.
func (d *description) tokenTypes() (style string, err error) {
	const name = "text/embeddings/token_type/weight"
	types, ok := d.values[name]
	if k := d.keys(); ok && len(types.shape) == 2 {
		if err := errors.Join(d.agrees("type_vocab_size", k.whole("type_vocab_size"), types.shape[0]), k.err); err != nil {
			return "", err
		}
	}
	if !ok || len(types.shape) != 2 || types.shape[0] == 2 || types.shape[0] < 1 {
		return "bert", nil
	}
	if rows := types.shape[0]; rows > 2 {
		width, from := types.shape[1], types.from
		d.values[name] = value{shape: []int{2, width}, from: from, read: func(dst []float32) error {
			return from[0].Read(dst, 0)
		}}
		d.note("it has %d types of tokens, of which texts have the first and pairs of them the second: the others are not read", rows)
		return "bert", nil
	}
	positions, ok := d.values[textPositions]
	if !ok {
		return "bert", nil
	}
	in := append(slices.Clone(positions.from), types.from...)
	if positions, err = joinAfter(0, in); err != nil {
		return "", err
	}
	positions.from = in
	d.values[textPositions] = positions
	delete(d.values, name)
	return "roberta", nil
}

// bertText is the tensors of a BERT below one of the prefixes.
func bertText(prefixes ...string) part {
	return part{
		prefixes: prefixes,
		marks:    []string{"embeddings.LayerNorm.weight", "embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight"},
		needs: append([]rule{
			{"text/embeddings/word/weight", "embeddings.word_embeddings.weight", nil},
			{"text/embeddings/position/weight", "embeddings.position_embeddings.weight", nil},
			{"text/embeddings/token_type/weight", "embeddings.token_type_embeddings.weight", nil},
		}, bertLayers...),
		may:      append(bertCross, pooler),
		unneeded: []string{"embeddings.position_ids", "embeddings.token_type_ids"},
	}
}

// bertLayers are the tensors that BERT and RoBERTa share.
var bertLayers = []rule{
	{"text/embeddings/norm/*", "embeddings.LayerNorm.*", nil},
	{"text/layers/#/attention/qkv/*", "encoder.layer.#.attention.self.{query,key,value}.*", nil},
	{"text/layers/#/attention/output/*", "encoder.layer.#.attention.output.dense.*", nil},
	{"text/layers/#/attention/norm/*", "encoder.layer.#.attention.output.LayerNorm.*", nil},
	{"text/layers/#/ffn/intermediate/*", "encoder.layer.#.intermediate.dense.*", nil},
	{"text/layers/#/ffn/output/*", "encoder.layer.#.output.dense.*", nil},
	{"text/layers/#/ffn/norm/*", "encoder.layer.#.output.LayerNorm.*", nil},
}

// bertCross are those of layers that attend to images too, the last ones of ALBEF.
var bertCross = []rule{
	{"text/layers/#/crossattention/query/*", "encoder.layer.#.crossattention.self.query.*", nil},
	{"text/layers/#/crossattention/kv/*", "encoder.layer.#.crossattention.self.{key,value}.*", nil},
	{"text/layers/#/crossattention/output/*", "encoder.layer.#.crossattention.output.dense.*", nil},
	{"text/layers/#/crossattention/norm/*", "encoder.layer.#.crossattention.output.LayerNorm.*", nil},
}

// pooler is the layer behind the first token, which model.text.pool may read.
var pooler = rule{"text/pooler/*", "pooler.dense.*", nil}

// bertMLM is the head of masked language modelling, whose decoder is the word embedding.
func bertMLM(prefix string) part {
	return part{
		prefixes: []string{prefix},
		marks:    []string{"cls.predictions.transform.dense.weight"},
		needs: []rule{
			{"text/mlm/dense/*", "cls.predictions.transform.dense.*", nil},
			{"text/mlm/norm/*", "cls.predictions.transform.LayerNorm.*", nil},
			{"text/mlm/bias", "cls.predictions.bias | cls.predictions.decoder.bias", nil},
		},
		unneeded: []string{"cls.predictions.decoder.*", "cls.seq_relationship.*"},
	}
}
