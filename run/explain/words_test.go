package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/check"
)

// TestWordsOf: whatever the kind of the tokenizer, its pieces are joined to the words of a text, each
// place is in one word, and what stands around a text is told apart.
func TestWordsOf(t *testing.T) {
	const kinds = "../../data/tokenizer/testdata/kinds"
	list := check.Get(os.ReadDir(kinds))(t)
	text := "a red zebra on the caf\u00e9 terrace of \u6771\u4eac"
	tried := 0
	for _, f := range list {
		tok, err := tokenizer.Load(filepath.Join(kinds, f.Name()), tokenizer.TemplateFile)
		if err != nil {
			continue // a file of texts or of settings
		}
		tried++
		ids := tok.Encode(text, 0)
		var plain []string
		next := 0
		for _, w := range wordsOf(tok, ids) {
			for _, p := range w.places {
				if p != next {
					t.Errorf("%s: place %d, want %d", f.Name(), p, next)
				}
				next++
			}
			if !w.special {
				plain = append(plain, w.text)
			}
		}
		if next != len(ids) {
			t.Errorf("%s: %d places of %d", f.Name(), next, len(ids))
		}
		for _, w := range plain {
			if strings.Contains(w, "<0x") {
				t.Errorf("%s: the word %q shows a token of a byte", f.Name(), w)
			}
		}
		want := strings.ReplaceAll(tok.Decode(ids), "\ufffd", "") // of bytes that are not a character
		if got := strings.Join(plain, " "); got != want {
			t.Errorf("%s: words %q, text %q", f.Name(), got, want)
		}
	}
	if tried < 4 {
		t.Errorf("%d tokenizers tried", tried)
	}
}
