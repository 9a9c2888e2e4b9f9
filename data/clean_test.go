package data

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// TestCleanLikeOpenCLIP compares with the cleaning functions of open_clip, of whose ftfy only NFC is left
// (tools/goldens/tokenizer_kinds.py).
func TestCleanLikeOpenCLIP(t *testing.T) {
	f, err := os.Open("tokenizer/testdata/kinds/goldens.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Texts        []string
		Whitespace   []string `json:"clip_whitespace"`
		Lower        []string `json:"clip_lower"`
		Canonicalize []string `json:"clip_canonicalize"`
	}
	if err := json.NewDecoder(z).Decode(&g); err != nil {
		t.Fatal(err)
	}
	if len(g.Texts) < 300 {
		t.Fatalf("%d texts", len(g.Texts))
	}
	for rule, want := range map[string][]string{CleanNone: g.Texts, CleanWhitespace: g.Whitespace, CleanLower: g.Lower, CleanCanonicalize: g.Canonicalize} {
		for i, s := range g.Texts {
			if got := Clean(rule, s, 1); got != want[i] {
				t.Errorf("%s of %q: got %q, want %q", rule, s, got, want[i])
			}
		}
	}
	for _, s := range g.Texts {
		if got, want := Clean(CleanALBEF, s, 2), CleanCaption(s, 2); got != want || Clean("", s, 2) != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}
