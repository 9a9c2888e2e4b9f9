package features

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/batch"
)

// Set is a split of pairs for evaluation: image i belongs to text i.
type Set struct {
	p    *Pairs
	rows []int32
}

var _ data.Galleries = (*Set)(nil)

// Set returns a split (train, val or test) for evaluation; at most maxPairs of it, the
// first, with 0 for all.
func (p *Pairs) Set(split string, maxPairs int) (*Set, error) {
	rows, err := p.Rows(split)
	if err != nil {
		return nil, err
	}
	if maxPairs > 0 {
		rows = rows[:min(maxPairs, len(rows))]
	}
	return &Set{p, rows}, nil
}

// Len returns the number of pairs.
func (s *Set) Len() int { return len(s.rows) }

// Images is the gallery of image features: batch.ImageFeatures (D) and batch.IDs.
func (s *Set) Images() data.Gallery { return gallery{s.rows, s.p.images, s.p.imageColumn()} }

// Texts is the gallery of text features: batch.TextFeatures (E) and batch.IDs. There are
// no words, so nothing has to be said about them.
func (s *Set) Texts(*data.Texts) (data.Gallery, error) {
	return gallery{s.rows, s.p.texts, s.p.textColumn()}, nil
}

// TextImage returns j: rows are in step.
func (s *Set) TextImage(j int) int { return j }

// ImageID is the row of pair i in the files.
func (s *Set) ImageID(i int) int64 { return int64(s.rows[i]) }

// ImageName says which row pair i is.
func (s *Set) ImageName(i int) string { return fmt.Sprintf("%s row %d", s.p.images.Path(), s.rows[i]) }

// Gallery is all rows of a matrix as a gallery of the column of that name.
func Gallery(m *Matrix, column string) data.Gallery {
	rows := make([]int32, m.Rows())
	for i := range rows {
		rows[i] = int32(i)
	}
	return gallery{rows, m, data.Column{Name: column, Shape: []int{m.Width()}}}
}

// gallery is one side of a set.
type gallery struct {
	rows   []int32
	m      *Matrix
	column data.Column
}

func (g gallery) Len() int { return len(g.rows) }

func (g gallery) Columns() []data.Column {
	return []data.Column{g.column, {Name: batch.IDs, Type: batch.Int32}}
}

func (g gallery) Fill(i int, row batch.Row) error {
	row.Set(batch.IDs, g.rows[i])
	return fill(g.m, g.rows[i], row.Floats(g.column.Name))
}
