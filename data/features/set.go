package features

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
)

// Set is a split of pairs for evaluation: its images by rising row, and all texts of each of them.
type Set struct {
	p      *Pairs
	all    []Pair  // of the split
	images []int32 // rows
	texts  []int32 // rows
	owner  []int32 // image of a text, as a place in images

	bad *account.Account // pairs that Without left out; nil: none
}

var _ data.Galleries = (*Set)(nil)

// Set returns a split (train, val or test) for evaluation; at most maxImages images of it, the
// first, with 0 for all.
func (p *Pairs) Set(split string, maxImages int) (*Set, error) {
	list, err := p.Split(split)
	if err != nil {
		return nil, err
	}
	starts := imageStarts(list)
	n := len(starts) - 1
	if maxImages > 0 {
		n = min(maxImages, n)
	}
	s := &Set{p: p, all: list}
	for i, q := range list[:starts[n]] {
		if int32(i) == starts[len(s.images)] {
			s.images = append(s.images, q.Image)
		}
		s.texts, s.owner = append(s.texts, q.Text), append(s.owner, int32(len(s.images)-1))
	}
	return s, nil
}

// Close closes the files of the pairs. No row may be read any more.
func (s *Set) Close() error { return s.p.Close() }

// Len returns the number of images.
func (s *Set) Len() int { return len(s.images) }

// Images is the gallery of image features: batch.ImageFeatures (D) and batch.IDs.
func (s *Set) Images() data.Gallery {
	return gallery{s.images, s.p.images, s.p.imageColumn(), func(i int) int32 { return s.images[i] }}
}

// Texts is the gallery of text features: batch.TextFeatures (E) and batch.IDs. There are
// no words, so nothing has to be said about them.
func (s *Set) Texts(*data.Texts) (data.Gallery, error) {
	return gallery{s.texts, s.p.texts, s.p.textColumn(), func(j int) int32 { return s.images[s.owner[j]] }}, nil
}

// TextImage returns the place of the image of text j.
func (s *Set) TextImage(j int) int { return int(s.owner[j]) }

// NumTexts returns the number of texts.
func (s *Set) NumTexts() int { return len(s.texts) }

// TextRow is the row of text j in its file.
func (s *Set) TextRow(j int) int { return int(s.texts[j]) }

// ImageID is the row of image i in its file.
func (s *Set) ImageID(i int) int64 { return int64(s.images[i]) }

// ImageName says which row image i is.
func (s *Set) ImageName(i int) string {
	return fmt.Sprintf("%s row %d", s.p.images.Path(), s.images[i])
}

// Gallery is all rows of a matrix as a gallery of the column of that name; ids are row numbers.
func Gallery(m *Matrix, column string) data.Gallery {
	rows := make([]int32, m.Rows())
	for i := range rows {
		rows[i] = int32(i)
	}
	return gallery{rows, m, data.Column{Name: column, Shape: []int{m.Width()}}, func(i int) int32 { return rows[i] }}
}

// gallery is one side of a set.
type gallery struct {
	rows   []int32
	m      *Matrix
	column data.Column
	id     func(i int) int32 // row of the image of row i
}

func (g gallery) Len() int { return len(g.rows) }

func (g gallery) Columns() []data.Column {
	return []data.Column{g.column, {Name: batch.IDs, Type: batch.Int32}}
}

func (g gallery) Fill(i int, row batch.Row) error {
	row.Set(batch.IDs, g.id(i))
	return fill(g.m, g.rows[i], row.Floats(g.column.Name))
}
