package gallery

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/search"
)

// table is a tensor whose rows lie in one file after the other. It is a search.Pool.
type table struct {
	parts []*features.Matrix
	ends  []int // rows up to the end of each part
	width int
}

var _ search.Pool = (*table)(nil)

// Stamp says which rows of which files these are, and what the file system says of the files.
func (t *table) Stamp() (rows string, s identity.Stamp, err error) {
	var stamps []identity.Stamp
	l := identity.NewList()
	for _, m := range t.parts {
		of, s, err := m.Stamp()
		if err != nil {
			return "", s, err
		}
		l.Add(of)
		stamps = append(stamps, s)
		if len(t.parts) == 1 {
			return of, s, nil
		}
	}
	return absolute(t.parts[0].Path()) + " and what follows " + l.Sum().String(), identity.Together(stamps...), nil
}

// add takes another file, whose rows follow.
func (t *table) add(m *features.Matrix) error {
	if t.width == 0 {
		t.width = m.Width()
	}
	if m.Width() != t.width {
		return fmt.Errorf("gallery: %s has rows of width %d, the files before it of %d", m.Path(), m.Width(), t.width)
	}
	if m.Rows() > math.MaxInt32-t.Rows() {
		return fmt.Errorf("gallery: more than %d rows cannot be searched: make several galleries", math.MaxInt32)
	}
	t.parts, t.ends = append(t.parts, m), append(t.ends, t.Rows()+m.Rows())
	return nil
}

// Rows returns N.
func (t *table) Rows() int {
	if len(t.ends) == 0 {
		return 0
	}
	return t.ends[len(t.ends)-1]
}

// Width returns C.
func (t *table) Width() int { return t.width }

// part returns the file that row i lies in, and its first row.
func (t *table) part(i int) (p, first int) {
	p = sort.SearchInts(t.ends, i+1)
	if p > 0 {
		first = t.ends[p-1]
	}
	return p, first
}

// Row reads row i into dst (C). It fails where a number is not finite.
func (t *table) Row(i int, dst []float32) error {
	if i < 0 || i >= t.Rows() {
		return fmt.Errorf("gallery: there is no row %d among %d: count from 0", i, t.Rows())
	}
	p, first := t.part(i)
	return t.parts[p].Row(i-first, dst)
}

// ReadRows reads rows from first on into dst (n, C), faster than one by one.
func (t *table) ReadRows(first int, dst []float32) error {
	for len(dst) > 0 {
		p, start := t.part(first)
		if first < 0 || p == len(t.parts) {
			return fmt.Errorf("gallery: there is no row %d among %d", first, t.Rows())
		}
		n := min(len(dst), (t.ends[p]-first)*t.width)
		if err := t.parts[p].ReadRows(first-start, dst[:n]); err != nil {
			return err
		}
		first, dst = first+n/t.width, dst[n:]
	}
	return nil
}

// Close gives the files back.
func (t *table) Close() (err error) {
	for _, m := range slices.Backward(t.parts) {
		err = errors.Join(err, m.Close())
	}
	return err
}
