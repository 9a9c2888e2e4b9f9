package features

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Pool is the rows of one side that training may see, as one range of N rows of D numbers: first
// those of the file of the pairs that no pair of the validation or test split has, rising, then all
// rows of a further file. It may be used by several goroutines and belongs to its Pairs.
type Pool struct {
	main *Matrix
	rows []int32 // of main
	more *Matrix // nil: none

	centre Centre // of all rows; nil: they are as in the files
}

// newPool leaves the rows out that are held back, which rise.
func newPool(main, more *Matrix, held []int32, centre Centre) (*Pool, error) {
	p := &Pool{main: main, more: more, centre: centre, rows: make([]int32, 0, main.Rows()-len(held))}
	for i := range int32(main.Rows()) {
		if len(held) > 0 && held[0] == i {
			held = held[1:]
			continue
		}
		p.rows = append(p.rows, i)
	}
	if n := int64(len(p.rows)) + int64(p.moreRows()); n > maxRows {
		return nil, fmt.Errorf("features: %s and %s have %d rows together: at most %d can be numbered", main.Path(),
			more.Path(), n, maxRows)
	}
	return p, nil
}

func (p *Pool) moreRows() int {
	if p.more == nil {
		return 0
	}
	return p.more.Rows()
}

// Rows returns N.
func (p *Pool) Rows() int { return len(p.rows) + p.moreRows() }

// Width returns D.
func (p *Pool) Width() int { return p.main.Width() }

// Place returns the row of the pool that row i of the file of the pairs is, and whether training
// may see it.
func (p *Pool) Place(i int32) (int32, bool) {
	at, ok := slices.BinarySearch(p.rows, i)
	return int32(at), ok
}

// Row reads row i into dst (D), centred where its Pairs are. It fails with a *NonFiniteError, which names file and row,
// where a number is not finite.
func (p *Pool) Row(i int, dst []float32) error {
	m, j := p.at(i)
	err := m.Row(j, dst)
	if err == nil {
		p.centre.Apply(dst)
	}
	return err
}

// at returns the file of row i and its row there.
func (p *Pool) at(i int) (*Matrix, int) {
	if i >= 0 && i < len(p.rows) {
		return p.main, int(p.rows[i])
	}
	if i >= len(p.rows) && p.more != nil {
		return p.more, i - len(p.rows)
	}
	return p.main, -1 // which says that there is no such row
}

// Name says which row of which file row i is.
func (p *Pool) Name(i int) string {
	m, j := p.at(i)
	return fmt.Sprintf("%s row %d", m.Path(), j)
}

// ReadRows reads rows from first on into dst (n, D), those that lie together in a file in one
// piece. Unlike Row it leaves numbers that are not finite to the caller.
func (p *Pool) ReadRows(first int, dst []float32) error {
	d := p.Width()
	n := len(dst) / d
	if first < 0 || n*d != len(dst) || first > p.Rows()-n {
		return fmt.Errorf("features: there are no rows %d to %d of %d numbers in a pool of %d of %d", first, first+n,
			len(dst), p.Rows(), d)
	}
	defer p.centre.each(dst)
	for n > 0 {
		m, at := p.at(first)
		count := 1
		if m == p.main {
			for count < n && first+count < len(p.rows) && int(p.rows[first+count]) == at+count {
				count++
			}
		} else {
			count = n
		}
		if err := m.ReadRows(at, dst[:count*d]); err != nil {
			return err
		}
		first, n, dst = first+count, n-count, dst[count*d:]
	}
	return nil
}

// openMore opens a file of further rows of the width of main, nil for none. A file that holds one
// array has no use for the name of a tensor.
func openMore(path, tensor, cache string, main *Matrix) (*Matrix, error) {
	if path == "" {
		return nil, nil
	}
	if strings.ToLower(filepath.Ext(path)) == ".npy" {
		tensor = ""
	}
	m, err := OpenSource(path, tensor, cache)
	if err != nil {
		return nil, err
	}
	if m.Width() != main.Width() {
		return nil, errors.Join(
			fmt.Errorf("features: the rows of the pool %s have %d numbers, and those of %s %d: a pool holds features "+
				"of the same encoder", path, m.Width(), main.Path(), main.Width()), m.Close())
	}
	return m, nil
}
