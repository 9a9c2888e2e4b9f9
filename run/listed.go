package run

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
)

// listedTexts is a gallery of texts that no split has: the columns of the tokenizer.
type listedTexts struct {
	texts   []string
	clean   func(string) string
	columns *data.Texts
}

func (g listedTexts) Len() int               { return len(g.texts) }
func (g listedTexts) Columns() []data.Column { return g.columns.Columns() }

// cleaner cleans a text as the captions of a configuration are.
func cleaner(cfg config.Config) func(string) string {
	return func(s string) string { return data.Clean(cfg.Data.Clean, s, cfg.Data.MaxWords) }
}

// Fill cleans text i as those of a split are.
func (g listedTexts) Fill(i int, row batch.Row) error {
	text, err := caption(g.texts[i], g.clean, g.columns.Tokenizer)
	if err != nil {
		return err
	}
	g.columns.Fill(text, row)
	return nil
}

// caption cleans a text. It fails where nothing is left of it, or no token: what stands around a text stands around
// any, and where nothing does, a text without a token has the features 0.
func caption(text string, clean func(string) string, tok data.Tokenizer) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("the text %.60q is no UTF-8: save it as UTF-8", text)
	}
	cleaned := clean(text)
	if t, ok := tok.(*tokenizer.Tokenizer); strings.TrimSpace(cleaned) == "" || ok && len(t.Encode(cleaned, t.Around()+1)) <= t.Around() {
		return "", fmt.Errorf("nothing of the text %.60q is left as a caption: give it a word", text)
	}
	return cleaned, nil
}

// Texts is a gallery of texts that no split has, cleaned as captions are: the columns of the tokenizer.
func Texts(cfg config.Config, texts []string, columns *data.Texts) data.Gallery {
	return listedTexts{texts, cleaner(cfg), columns}
}
