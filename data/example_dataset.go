package data

import (
	"hash/fnv"

	"github.com/geoalign/geoalign/data/transform"
)

// ExampleDataset is examples as images with captions: the first picture of each with its text. Examples about one picture have one id.
type ExampleDataset struct{ Of Examples }

var (
	_ Dataset  = ExampleDataset{}
	_ Labelled = ExampleDataset{}
)

// Len implements Dataset.
func (d ExampleDataset) Len() int { return d.Of.Len() }

// Captions implements Dataset.
func (d ExampleDataset) Captions(i int) []string {
	if text := d.Of.Example(i).Text; !blank(CleanNone, text) {
		return []string{text}
	}
	return nil
}

// ImageID implements Dataset.
func (d ExampleDataset) ImageID(i int) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.Of.PictureName(i, 0)))
	return int64(h.Sum64() >> 1)
}

// Name implements Dataset.
func (d ExampleDataset) Name(i int) string { return d.Of.PictureName(i, 0) }

// Image implements Dataset.
func (d ExampleDataset) Image(i int) (*transform.Image, error) { return d.Of.Picture(i, 0) }

// Labels implements Labelled.
func (d ExampleDataset) Labels() (names []string, ok bool) {
	names = d.Of.Labels()
	return names, names != nil
}

// Label implements Labelled.
func (d ExampleDataset) Label(i int) int32 { return d.Of.Example(i).Label }

// path implements pathed for examples about files.
func (d ExampleDataset) path(i int) string { return d.Of.PictureName(i, 0) }
