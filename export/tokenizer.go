package export

import (
	"bytes"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/encoders"
)

// cleans are the rules by which the programs of forms clean texts themselves, by what is written for them, besides none.
var cleans = map[string][]string{
	ALBEF:    {data.CleanALBEF},
	Sentence: {data.CleanLower, data.CleanLowercase},
	OpenCLIP: {data.CleanWhitespace, data.CleanLower, data.CleanCanonicalize},
}

// tokenizerFiles adds tokenizer.json with tokenizer_config.json, and of a WordPiece vocabulary vocab.txt.
func (x *job) tokenizerFiles() error {
	t := x.Tokenizer
	if t == nil {
		return nil
	}
	b, err := t.Portable()
	if err != nil && t.Kind() == tokenizer.WordLevel {
		key, value, forms := "data.vocab", x.Config.Data.Vocab, []string(nil)
		if value == "" {
			key, value = "data.vocab_kind", "words"
		}
		if x.Side == "" && x.To != ALBEF {
			forms = append(forms, "--side image")
		}
		return x.refuse(key, value, "whole words are cut as NLTK does, which readers of tokenizer.json cannot",
			forms...)
	}
	if err != nil {
		return err
	}
	x.text("tokenizer.json", b)
	// whose program has that rule
	if clean := x.Config.Data.Clean; clean != data.CleanNone && !slices.Contains(cleans[x.To], clean) {
		x.note("captions were cleaned before the tokenizer read them (data.clean = %q), which its files do not do: clean texts in the same way first", clean)
	}
	c := object{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": x.Config.Data.Tokens,
		"padding_side": "right", "pad_token": t.Token(t.PadID())}
	for key, id := range map[string]int32{"unk_token": t.UnkID(), "cls_token": t.ClsID(), "sep_token": t.SepID(),
		"mask_token": t.MaskID()} {
		if id >= 0 {
			c[key] = t.Token(id)
		}
	}
	if w, ok := x.sides.Text.Tower.(encoders.TextTower); ok && w.Padding && w.Pool == encoders.PoolEnd {
		c["model_input_names"] = []string{"input_ids"} // without a mask: padding is read like words
	}
	x.json("tokenizer_config.json", c)
	if t.Kind() == tokenizer.WordPiece && !slices.Contains(t.Tokens(), "") {
		var list bytes.Buffer
		for _, s := range t.Tokens() {
			list.WriteString(s + "\n")
		}
		x.text("vocab.txt", list.Bytes())
	}
	return nil
}
