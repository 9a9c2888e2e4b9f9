package tokenizer

import (
	"slices"
	"testing"
)

// Bytes that a vocabulary of SentencePiece falls back to are text again, and letters of such a vocabulary are no bytes of a
// byte-level one.
func TestDecodeBytes(t *testing.T) {
	tok, err := Load("testdata/kinds/gemma", TemplateFile)
	if err != nil {
		t.Fatal(err)
	}
	text := "a caf\u00e9\n terrace \u6771"
	ids := tok.Encode(text, 0)
	if id, _ := tok.ID("<0x0A>"); !slices.Contains(ids, id) {
		t.Fatalf("%v have no token of a byte", ids)
	}
	if got := tok.Decode(ids); got != text {
		t.Errorf("decoded to %q, want %q", got, text)
	}
	if got, want := tok.Decode(ids[:len(ids)-2]), "a caf\u00e9\n terrace \ufffd"; got != want { // two bytes of three
		t.Errorf("decoded to %q, want %q", got, want)
	}
}
