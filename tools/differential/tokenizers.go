package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/data/tokenizer"
)

type tokenizerCase struct {
	Name  string
	Texts []string
	IDs   [][]int32
}

// compareTokenizers compares ids of made texts with those of Hugging Face's tokenizers, for tokenizers of every kind,
// trained for that.
func compareTokenizers(o *options) (*result, error) {
	var cases []tokenizerCase
	if err := o.cases("tokens.py", &cases, "tokenizers"); err != nil {
		return nil, err
	}
	r := new(result)
	for _, c := range cases {
		b, err := os.ReadFile(filepath.Join(o.dir, c.Name+".json"))
		if err != nil {
			return nil, err
		}
		t, err := tokenizer.Parse(b)
		if err != nil {
			r.cases++
			r.differ("%s is not read: %v", c.Name, err)
			continue
		}
		for i, text := range c.Texts {
			r.cases++
			if got := t.Encode(text, 0); !slices.Equal(got, c.IDs[i]) {
				r.differ("%s %q: %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
	}
	r.note("%d tokenizers", len(cases))
	return r, nil
}
