package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
)

// Columned is a Dataset whose images have columns of their own, such as regions: streams and evaluations
// of it give them.
type Columned interface {
	Dataset
	// ImageColumns are these columns.
	ImageColumns() []Column
	// FillImage writes those of them that row has, of image i. An error names the image.
	FillImage(i int, row batch.Row) error
	// Pixels says whether Image gives pictures. If not, there are no columns of pixels.
	Pixels() bool
}

// columnsOfImages are the columns of the images of a data set: pixels of size x size and what is of its own.
func columnsOfImages(ds Dataset, pixels []Column) []Column {
	c, ok := ds.(Columned)
	switch {
	case !ok:
		return pixels
	case c.Pixels():
		return append(pixels, c.ImageColumns()...)
	}
	return c.ImageColumns()
}

// hasPixels says whether a data set has pictures.
func hasPixels(ds Dataset) bool {
	c, ok := ds.(Columned)
	return !ok || c.Pixels()
}

// hasImages says whether a data set knows anything of images. Sentences alone have none.
func hasImages(ds Dataset) bool {
	c, ok := ds.(Columned)
	return !ok || c.Pixels() || len(c.ImageColumns()) > 0
}

// fillImage writes the columns of image i that are the data set's own.
func fillImage(ds Dataset, i int, row batch.Row) error {
	if c, ok := ds.(Columned); ok {
		return c.FillImage(i, row)
	}
	return nil
}

// Accompanied is a Dataset that has further texts beside each caption: its positive, and behind it its hard negative.
// Training streams of it give them.
type Accompanied interface {
	Dataset
	// Others is the number of these texts, the same for all: 0, 1 or 2.
	Others() int
	// Other is text k of them of image i, not blank.
	Other(i, k int) string
}

// OtherTexts are those texts of image i of a data set, none where it is not Accompanied.
func OtherTexts(ds Dataset, i int) (list []string) {
	if a, ok := ds.(Accompanied); ok {
		for k := range a.Others() {
			list = append(list, a.Other(i, k))
		}
	}
	return list
}

// otherTexts are the columns of these texts.
var otherTexts = [...]batch.Text{batch.PositiveText, batch.NegativeText}

// columnsOfOthers are the columns of the texts beside the captions of a data set.
func (cfg *TrainConfig) columnsOfOthers(ds Dataset) (list []Column) {
	if a, ok := ds.(Accompanied); ok {
		for _, text := range otherTexts[:a.Others()] {
			list = append(list, cfg.Text.TextColumns(text)...)
		}
	}
	return list
}

// fillOthers writes those of them that row has, of image i.
func (cfg *TrainConfig) fillOthers(ds Dataset, i int, row batch.Row) error {
	for k, text := range OtherTexts(ds, i) {
		s := Clean(cfg.Clean, text, cfg.MaxWords)
		if s == "" {
			return fmt.Errorf("data: %s: nothing is left of %.60q by data.clean: use another rule, or remove the row",
				ds.Name(i), text)
		}
		cfg.Text.FillText(s, row, otherTexts[k])
	}
	return nil
}
