package embed

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/transform"
)

// listedImages is a gallery of images that no split has: batch.Images (3, S, S).
type listedImages struct {
	n     int
	size  int // S
	input transform.Input
	load  func(i int) (*transform.Image, error)
}

// reading says how texts become tokens, as settings with commas between, "" for a model that reads none. A gallery of
// texts keeps it: by other settings the same words have other features.
func reading(cfg config.Config) string {
	d := cfg.Data
	switch {
	case cfg.Has(section.ImagesAlone) || cfg.Has(section.Stored):
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

// storedRows is a gallery of n rows of stored features from first on.
type storedRows struct {
	m        *features.Matrix
	first, n int
	column   string
}

// listedRows is a gallery of rows of stored features (n, width) in memory.
type listedRows struct {
	x      []float32
	width  int
	column string
}

// lenient is a gallery whose bad rows are noted and not fatal. Fill is called once for each row.
type lenient struct {
	data.Gallery
	bad []error // of each row
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

func (g storedRows) Len() int { return g.n }

func (g storedRows) Columns() []data.Column {
	return []data.Column{{Name: g.column, Shape: []int{g.m.Width()}}}
}

func (g storedRows) Fill(i int, row batch.Row) error {
	return g.m.Row(g.first+i, row.Floats(g.column))
}

func (g listedRows) Len() int { return len(g.x) / g.width }

func (g listedRows) Columns() []data.Column {
	return []data.Column{{Name: g.column, Shape: []int{g.width}}}
}

func (g listedRows) Fill(i int, row batch.Row) error {
	copy(row.Floats(g.column), g.x[i*g.width:(i+1)*g.width])
	return nil
}

func (g lenient) Fill(i int, row batch.Row) error {
	if g.bad[i] = g.Gallery.Fill(i, row); g.bad[i] != nil {
		// what was read so far may be no number, which a closed form refuses for the whole batch
		for _, c := range g.Columns() {
			clear(row.Floats(c.Name))
		}
	}
	return nil
}
