package probe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
)

// pairColumns are the columns of a file of text pairs.
var pairColumns = []string{"text_a", "text_b", "label"}

// loadTextPairs reads labelled pairs of texts in the order of a file that package table reads, with the columns text_a,
// text_b and label. A row that lacks one of them is an error with its place.
func loadTextPairs(path string) (pairs []data.TextPair, err error) {
	err = table.Read(path, table.Named(pairColumns, noPairColumn), func(r table.Row) error {
		for k, cell := range r.Cells {
			if strings.TrimSpace(cell) == "" {
				r.Err = fmt.Errorf("%s is empty: give it a value, or remove the pair", pairColumns[k])
			}
		}
		if r.Err != nil {
			return r.Wrong(r.Err)
		}
		pairs = append(pairs, data.TextPair{A: r.Cells[0], B: r.Cells[1], Label: r.Cells[2]})
		return nil
	})
	if err == nil && pairs == nil {
		err = table.Whole(path, errors.New("it has no pair"))
	}
	if err != nil {
		return nil, err
	}
	return pairs, nil
}

// noPairColumn is the error of a column that a file lacks.
func noPairColumn(k int, columns []string) error {
	return fmt.Errorf("there is no column %q (got %.200q): name the columns text_a, text_b and label", pairColumns[k],
		columns)
}
