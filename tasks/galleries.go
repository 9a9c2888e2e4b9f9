package tasks

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
)

// Some is the rows of a gallery that are named, in that order.
type Some struct {
	data.Gallery
	Rows []int
}

// Len implements data.Gallery.
func (s Some) Len() int { return len(s.Rows) }

// Fill implements data.Gallery. An error says which row of the whole gallery it is of.
func (s Some) Fill(i int, row batch.Row) error {
	if err := s.Gallery.Fill(s.Rows[i], row); err != nil {
		return fmt.Errorf("row %d of all: %w", s.Rows[i], err)
	}
	return nil
}

// Known returns the rows of a gallery whose class is known, with their classes.
func Known(g data.Gallery, label func(i int) int32) (data.Gallery, []int32) {
	some := Some{Gallery: g}
	var labels []int32
	for i := range g.Len() {
		if l := label(i); l != data.UnknownLabel {
			some.Rows, labels = append(some.Rows, i), append(labels, l)
		}
	}
	if len(labels) == g.Len() {
		return g, labels
	}
	return some, labels
}

// First are the first N samples of a stream as a gallery.
type First struct {
	data.Stream
	N int
}

// Len implements data.Gallery.
func (s First) Len() int { return s.N }

// Fill implements data.Gallery.
func (s First) Fill(i int, row batch.Row) error { return s.Sample(uint64(i), row) }

// List is a gallery of texts that no split has: the columns of the tokenizer.
type List struct {
	Texts    []string
	Clean    func(string) string
	Columned *data.Texts
	Blank    bool // nothing may be left of a text: what stands around it is then all there is
}

// Listed is a gallery of texts.
func (s *Setup) Listed(texts []string) List {
	return List{Texts: texts, Clean: s.Cleaned, Columned: s.Texts}
}

// Len implements data.Gallery.
func (g List) Len() int { return len(g.Texts) }

// Columns implements data.Gallery.
func (g List) Columns() []data.Column { return g.Columned.Columns() }

// Fill cleans text i as those of a split are.
func (g List) Fill(i int, row batch.Row) error {
	text := g.Clean(g.Texts[i])
	if !g.Blank {
		var err error
		if text, err = Caption(g.Texts[i], g.Clean, g.Columned.Tokenizer); err != nil {
			return err
		}
	}
	g.Columned.Fill(text, row)
	return nil
}

// Caption cleans a text. It fails where nothing is left of it, or no token: what stands around a text stands around
// any, and where nothing does, a text without a token has the features 0.
func Caption(text string, clean func(string) string, tok data.Tokenizer) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("the text %.60q is not UTF-8: save it as UTF-8", text)
	}
	cleaned := clean(text)
	if t, ok := tok.(*tokenizer.Tokenizer); strings.TrimSpace(cleaned) == "" || ok &&
		len(t.Encode(cleaned, t.Around()+1)) <= t.Around() {
		return "", fmt.Errorf("nothing of the text %.60q is left as a caption: give it a word", text)
	}
	return cleaned, nil
}
