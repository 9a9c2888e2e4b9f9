package weights

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// text sets the keys of [model.text].
func (d *description) text(o textFacts) error {
	config := cmp.Or(d.config.TextDict, d.config.Text, &d.config)
	if config.Position != "" && config.Position != "absolute" {
		return fmt.Errorf("%s has position_embedding_type %q, and absolute is read", d.path, config.Position)
	}
	if config.Decoder {
		return fmt.Errorf("%s has is_decoder = true, and encoders are read", d.path)
	}
	words, err := d.size("text/embeddings/word/weight", 0)
	if err != nil {
		return err
	}
	width, err := d.size("text/embeddings/word/weight", 1)
	if err != nil {
		return err
	}
	positions, err := d.size("text/embeddings/position/weight", 0)
	if err != nil {
		return err
	}
	hidden, err := d.size("text/layers/00/ffn/intermediate/weight", 0)
	if err != nil {
		return err
	}
	depth, fusion := d.depth("text/layers/"), 0
	for d.has(fmt.Sprintf("text/layers/%02d/crossattention/query/weight", depth-fusion-1)) {
		fusion++
	}
	said := cmp.Or(config.Heads, o.heads)
	if v, ok := d.values["text/relative/weight"]; ok {
		said = v.shape[1]
	}
	heads, err := d.heads("text", said, width)
	if err != nil {
		return err
	}
	if o.activation, err = activation("hidden_act", config.HiddenAct, o.activation); err != nil {
		return err
	}
	for _, c := range []struct {
		key      string
		said, is int
	}{
		{"hidden_size", config.HiddenSize, width}, {"num_hidden_layers", config.Layers, depth},
		{"intermediate_size", config.Intermediate, hidden}, {"vocab_size", config.Vocab, words},
	} {
		if err := d.agrees(c.key, c.said, c.is); err != nil {
			return err
		}
	}
	d.set("model.text.style", o.style)
	d.set("model.text.layers", depth-fusion)
	d.set("model.text.fusion_layers", fusion)
	d.set("model.text.width", width)
	d.set("model.text.heads", heads)
	d.set("model.text.mlp", hidden)
	d.set("model.text.positions", positions)
	d.set("model.text.activation", o.activation)
	d.set("model.text.pool", d.pool(o.pool))
	d.epsilon("text", cmp.Or(config.Eps, o.said), o.eps)
	if d.has("text/embeddings/class") { // behind the words
		positions--
	}
	return d.lengths(positions, o.tokens)
}

// lengths sets data.tokens by what the files beside the weights say, to all positions where whole and they say nothing.
func (d *description) lengths(positions int, whole bool) error {
	longest, err := d.longest()
	switch {
	case err != nil:
		return err
	case d.sentence.Longest > positions:
		d.note("sentence_bert_config.json has max_seq_length = %d, and there are %d positions: texts are cut there",
			d.sentence.Longest, positions)
		d.set("data.tokens", positions)
	case longest > 0 && longest < positions:
		d.set("data.tokens", longest)
	case whole:
		d.set("data.tokens", positions-max(0, d.classes("image/cls_token")-1)) // the first token of a text is there as often
	}
	return nil
}

// untied leaves out a head of masked language modelling with a matrix of its own, by the name of the tensor.
func (d *description) untied(matrix string) {
	if _, own := d.file.Lookup(matrix); !own || d.config.Tied == nil || *d.config.Tied {
		return
	}
	maps.DeleteFunc(d.values, func(name string, _ value) bool { return strings.HasPrefix(name, "text/mlm/") })
	d.note("the head of masked language modelling has a matrix of its own (tie_word_embeddings = false, %s), and here that is the embeddings of words: the head is not read", matrix)
}

// longest is the length that tokenizer_config.json cuts texts to, and pads those of SigLIP to, 0 where it says none:
// other tokenizers than those of Hugging Face do not read it.
func (d *description) longest() (int, error) {
	if d.sentence.Longest > 0 { // by which sentence-transformers sets the other
		return d.sentence.Longest, nil
	}
	if d.openCLIP != nil { // to which its tokenizer cuts and pads texts
		return cmp.Or(d.openCLIP.Model.Text.Context, 77), nil
	}
	if d.tokenizer.Config == "" {
		return 0, nil
	}
	text, err := files.Read(d.tokenizer.Config, files.MaxVocabulary)
	if err != nil {
		return 0, err
	}
	var x struct {
		Longest any `json:"model_max_length"` // 1e30 where there is no limit
	}
	if err := json.Unmarshal(files.WithoutMark(text), &x); err != nil {
		return 0, fmt.Errorf("%s: %w", d.tokenizer.Config, err)
	}
	n, ok := x.Longest.(float64)
	if !ok || !(n >= 1 && n <= math.MaxInt32) {
		return 0, nil
	}
	return int(n), nil
}

// positionsAfter reads positions from behind the id of padding that config.json has, where that is not the usual one.
func (d *description) positionsAfter() error {
	p := d.config.PadID
	if p == nil || *p == padded-1 {
		return nil
	}
	if *p < 0 || *p > math.MaxInt32 {
		return d.padding()
	}
	v, ok := d.values[textPositions]
	if !ok {
		return nil // which size tells
	}
	in := v.from
	v, err := joinAfter(*p+1, in)
	v.from = in
	d.values[textPositions] = v
	return err
}

// padding tells another id of padding than that by which positions are read.
func (d *description) padding() error {
	if p := d.config.PadID; p != nil && *p != padded-1 {
		return fmt.Errorf("%s has pad_token_id %d, by which positions are numbered, and %d is read", d.path, *p,
			padded-1)
	}
	return nil
}
