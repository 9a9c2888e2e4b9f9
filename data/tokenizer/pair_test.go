package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestEncodePair compares pairs of texts in one with Hugging Face's tokenizers of BERT and RoBERTa.
func TestEncodePair(t *testing.T) {
	b, err := os.ReadFile("testdata/pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Kind, A, B string
		Most       int
		IDs, Types []int32
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		tok, err := Load("testdata/kinds/"+c.Kind, "file")
		if err != nil {
			t.Fatal(err)
		}
		if err := tok.HasPairs(); err != nil {
			t.Fatal(err)
		}
		ids, first := tok.EncodePair(c.A, c.B, c.Most)
		types := make([]int32, len(ids))
		for i := first; i < len(ids) && c.Kind == "bert"; i++ { // RoBERTa has one type
			types[i] = 1
		}
		if !slices.Equal(ids, c.IDs) || !slices.Equal(types, c.Types) {
			t.Errorf("%s %q and %q in %d: %v of types %v, want %v of %v", c.Kind, c.A, c.B, c.Most, ids, types, c.IDs, c.Types)
		}
	}
	for _, most := range []int{0, 1, 2, 3} { // no room for a word
		tok, err := Load("testdata/kinds/bert", "file")
		if err != nil {
			t.Fatal(err)
		}
		if ids, first := tok.EncodePair("a man", "a dog", most); len(ids) != most || first > most {
			t.Errorf("%d tokens with %d of the first text, want %d", len(ids), first, most)
		}
	}
	clip, err := Load("testdata/kinds/words", "file")
	if err != nil {
		t.Fatal(err)
	}
	if clip.sep = -1; clip.HasPairs() == nil {
		t.Error("a vocabulary without [SEP] has pairs")
	}
}
