package run

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
)

// listedImages is a gallery of images that no split has: batch.Images (3, S, S).
type listedImages struct {
	n     int
	size  int // S
	input transform.Input
	load  func(i int) (*transform.Image, error)
}

func (g listedImages) Len() int { return g.n }

func (g listedImages) Columns() []data.Column {
	return []data.Column{{Name: batch.Images, Shape: []int{3, g.size, g.size}}}
}

func (g listedImages) Fill(i int, row batch.Row) error {
	m, err := g.load(i)
	if err != nil {
		return err
	}
	return transform.Eval{Input: g.input, Size: g.size}.Apply(m, nil, row.Floats(batch.Images))
}

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

// reading says how texts become tokens, as settings with commas between, "" for a model that reads none. A gallery of
// texts keeps it: by other settings the same words have other features.
func reading(cfg config.Config) string {
	d := cfg.Data
	switch {
	case cfg.Model.ImagesOnly() || cfg.Model.Stored():
		return ""
	case d.Clean == data.CleanALBEF: // which alone counts words
		return fmt.Sprintf("data.clean=%s,data.max_words=%d,data.tokens=%d", d.Clean, d.MaxWords, d.Tokens)
	}
	return fmt.Sprintf("data.clean=%s,data.tokens=%d", d.Clean, d.Tokens)
}

// readAs returns the settings that reading gave for a gallery. A file from elsewhere is not asked to set anything else.
func readAs(reading string) ([]string, error) {
	if reading == "" {
		return nil, nil
	}
	sets := strings.Split(reading, ",")
	for _, s := range sets {
		if key, _, _ := strings.Cut(s, "="); key != "data.clean" && key != "data.max_words" && key != "data.tokens" {
			return nil, fmt.Errorf("its texts were read by the setting %.60q, which this version of the program does not know", s)
		}
	}
	return sets, nil
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

// caption cleans a text. It fails where nothing is left of it, or no token: what stands around a text stands around any, and
// where nothing does, a text without a token has the features 0.
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

// storedRows is a gallery of n rows of stored features from first on.
type storedRows struct {
	m        *features.Matrix
	first, n int
	column   string
}

func (g storedRows) Len() int { return g.n }

func (g storedRows) Columns() []data.Column {
	return []data.Column{{Name: g.column, Shape: []int{g.m.Width()}}}
}

func (g storedRows) Fill(i int, row batch.Row) error {
	return g.m.Row(g.first+i, row.Floats(g.column))
}

// listedRows is a gallery of rows of stored features (n, width) in memory.
type listedRows struct {
	x      []float32
	width  int
	column string
}

func (g listedRows) Len() int { return len(g.x) / g.width }

func (g listedRows) Columns() []data.Column {
	return []data.Column{{Name: g.column, Shape: []int{g.width}}}
}

func (g listedRows) Fill(i int, row batch.Row) error {
	copy(row.Floats(g.column), g.x[i*g.width:(i+1)*g.width])
	return nil
}

// lenient is a gallery whose bad rows are noted and not fatal. Fill is called once for each row.
type lenient struct {
	data.Gallery
	bad []error // of each row
}

func (g lenient) Fill(i int, row batch.Row) error {
	if g.bad[i] = g.Gallery.Fill(i, row); g.bad[i] != nil {
		for _, c := range g.Columns() { // what was read so far may be no number, which a closed form refuses for the whole batch
			clear(row.Floats(c.Name))
		}
	}
	return nil
}
