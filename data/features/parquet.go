package features

import (
	"errors"
	"io"
	"strings"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
)

// parquetRows gives the rows of a column of lists of FLOAT, DOUBLE or FLOAT16 of a file, the only one of paths. An
// empty column is the only one of that kind. told hears of rows.
func parquetRows(paths []string, column string, emit func([]float32) error, told func(done, of int)) (err error) {
	f, size, err := files.Open(paths[0], 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return readParquet(f, size, column, emit, told)
}

func readParquet(r io.ReaderAt, size int64, column string, emit func([]float32) error,
	told func(done, of int)) (err error) {
	f, err := table.OpenParquet(r, size)
	if err != nil {
		return err
	}
	return f.Floats(func(names []string) (string, error) { return floatColumn(column, names) }, emit, told)
}

// floatColumn chooses among the columns of lists of numbers.
func floatColumn(name string, names []string) (string, error) {
	if name == "" && len(names) == 0 {
		return "", errors.New(
			"it has no column of lists of FLOAT, DOUBLE or FLOAT16: write the features as one list a row")
	}
	name, err := choose(name, names)
	if err != nil {
		return "", errors.New(strings.NewReplacer("it has no tensor",
			"it has no column of lists of FLOAT, DOUBLE or FLOAT16",
			"it holds the tensors", "it has the columns").Replace(err.Error()))
	}
	return name, nil
}
