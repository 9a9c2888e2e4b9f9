package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/tokenizer"
)

type tokenizerCase struct {
	Name  string
	Texts []string
	IDs   [][]int32
	Most  int       // tokens at most in Cut
	Cut   [][]int32 // ids of the texts, truncated
}

// compareTokenizers compares ids of made texts with those of Hugging Face's tokenizers, for tokenizers of every kind,
// trained for that.
func compareTokenizers(o *options) (*result, error) {
	var cases []tokenizerCase
	if err := o.cases("tokens.py", &cases, "tokenizers"); err != nil {
		return nil, err
	}
	r := new(result)
	refused := map[string]int{}
	for _, c := range cases {
		path := filepath.Join(o.dir, c.Name)
		if filepath.Ext(path) == "" {
			path += ".json"
		}
		t, err := tokenizer.Load(path, tokenizer.TemplateFile)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				r.differ("%s: a refusal is one line (got %v)", c.Name, err)
			}
			refused[strings.ReplaceAll(err.Error(), o.dir, "")]++
			continue
		}
		for i, text := range c.Texts {
			r.cases++
			if got := t.Encode(text, 0); !slices.Equal(got, c.IDs[i]) {
				r.differ("%s %q: %v, want %v", c.Name, text, got, c.IDs[i])
			}
			if got := t.Encode(text, c.Most); c.Most > 0 && !slices.Equal(got, c.Cut[i]) {
				r.differ("%s %q, %d tokens at most: %v, want %v", c.Name, text, c.Most, got, c.Cut[i])
			}
		}
	}
	r.note("%d tokenizers", len(cases))
	r.counts("refused", refused)
	return r, nil
}
