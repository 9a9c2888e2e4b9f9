package embed

import (
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data/table"
)

// rowNames are the lines of a file, each of which names a row of features.
type rowNames struct {
	path string
	done int
	pull func() (table.Line, error, bool)
	stop func()
}

// openRowNames opens the names of so many rows. It reads the file once, so that one that is of other rows is found
// before the work.
func openRowNames(path string, rows int) (*rowNames, error) {
	n := 0
	for l, err := range textLines(path) {
		if err != nil {
			return nil, err
		}
		if n++; l.Number != n {
			return nil, fmt.Errorf("%s: line %d is blank: every row of features has a line", path, n)
		}
		if !utf8.ValidString(l.Text) {
			return nil, fmt.Errorf("%s: line %d is not UTF-8: save the file as UTF-8", path, n)
		}
	}
	if n != rows {
		return nil, fmt.Errorf("%s has %d lines, the features %d rows: give a line for each row", path, n, rows)
	}
	x := &rowNames{path: path}
	x.pull, x.stop = iter.Pull2(textLines(path))
	return x, nil
}

// next returns the next n names.
func (x *rowNames) next(n int) ([]string, error) {
	names := make([]string, n)
	for i := range names {
		l, err, ok := x.pull()
		if err != nil {
			return nil, err
		}
		if x.done++; !ok || l.Number != x.done {
			return nil, fmt.Errorf("%s has changed meanwhile: start again", x.path)
		}
		names[i] = l.Text
	}
	return names, nil
}
