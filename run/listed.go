package run

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/batch"
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
	texts    []string
	maxWords int
	columns  *data.Texts
}

func (g listedTexts) Len() int               { return len(g.texts) }
func (g listedTexts) Columns() []data.Column { return g.columns.Columns() }

// Fill cleans text i as those of a split are.
func (g listedTexts) Fill(i int, row batch.Row) error {
	text := data.CleanCaption(g.texts[i], g.maxWords)
	if text == "" {
		return fmt.Errorf("nothing of the text %.60q is left as a caption: give it a word", g.texts[i])
	}
	g.columns.Fill(text, row)
	return nil
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

// lenient is a gallery whose bad rows are noted and not fatal. Fill is called once for each row.
type lenient struct {
	data.Gallery
	bad []error // of each row
}

func (g lenient) Fill(i int, row batch.Row) error {
	g.bad[i] = g.Gallery.Fill(i, row)
	return nil
}
