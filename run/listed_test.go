package run

import (
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
)

// TestCaptionsHaveTokens: a text without a token is none. Where nothing stands around texts it would have the features 0, and be as near to
// every row as to any other; where something does, those of any such text.
func TestCaptionsHaveTokens(t *testing.T) {
	kinds := filepath.Join("..", "data", "tokenizer", "testdata", "kinds")
	for _, x := range []struct{ file, template string }{
		{"whitespace", tokenizer.TemplateFile}, {"bert", tokenizer.TemplateFile}, {"bert", tokenizer.TemplateALBEF}, {"clip", tokenizer.TemplateFile},
	} {
		tok := check.Get(tokenizer.Load(filepath.Join(kinds, x.file), x.template))(t)
		clean := func(s string) string { return data.Clean(data.CleanNone, s, 0) }
		blank := []string{"", " \t"}
		if x.file != "clip" { // which has a token for every byte
			blank = append(blank, "\u0301", "\u0301 \u0301")
		}
		for _, text := range blank {
			if got, err := tasks.Caption(text, clean, tok); err == nil {
				t.Errorf("%s, %s: %q is the caption %q", x.file, x.template, text, got)
			}
		}
		for _, text := range []string{"a", " a \u0301", "\U0001f600"} {
			if got, err := tasks.Caption(text, clean, tok); err != nil || got != text {
				t.Errorf("%s, %s: of %q is left %q (%v)", x.file, x.template, text, got, err)
			}
		}
		if _, err := tasks.Caption("caf\xe9", clean, tok); err == nil {
			t.Errorf("%s, %s: what is not UTF-8 is a caption", x.file, x.template)
		}
	}
}
