package data

import "github.com/geoalign/geoalign/batch"

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
