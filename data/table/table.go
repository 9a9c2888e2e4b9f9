// Package table reads files of rows as text: tables with tabs or commas, JSON, JSON lines and parquet.
// A cell is text whatever the file holds, and a row is handed on as soon as it is read.
//
//	err := table.Read("dev.tsv", func(columns []string) (table.Columns, error) {
//		return table.Columns{At: []int{0, 2}}, nil
//	}, func(r table.Row) error { ... })
package table

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data"
)

// Row is a row of a file, with the cells that were asked for.
type Row struct {
	Line  int      // of the file from 1, or of JSON and parquet the row from 1
	Cells []string // valid UTF-8; the next row overwrites the slice
	Err   error    // why the row cannot be used: Cells is then nil

	path  string
	entry bool // of JSON or parquet
}

// Wrong is an error of the row with its file and its place: a *data.LineError, or of JSON and parquet a *data.RecordError.
func (r Row) Wrong(err error) error {
	if r.entry {
		return &data.RecordError{File: r.path, Index: r.Line - 1, Err: err}
	}
	return &data.LineError{File: r.path, Line: r.Line, Err: err}
}

// Columns says which columns of a file are wanted.
type Columns struct {
	At       []int // places of the columns among those of the file
	Headless bool  // the first line of the table is a row and names no columns
}

// Picker chooses columns by the names that a file has, or of a table without names by the cells of its first line.
type Picker func(columns []string) (Columns, error)

// Formats are the endings of files that Read reads.
var Formats = []string{".tsv", ".txt", ".csv", ".json", ".jsonl", ".parquet"}

// Read calls row for each row of a file, in order, and ends early with its error. The name of the file says what it is.
//
//   - .tsv and .txt: a line for each row with tabs between the cells. A quotation mark is a character like any other, as in
//     the files of GLUE.
//   - .csv: cells in quotation marks where they need them; a table with tabs in its first line is read as .tsv.
//   - .json: a list or an object of objects. .jsonl: an object on each line. The columns are the fields of the first object.
//   - .parquet: columns of texts and numbers.
//
// A byte order mark is left out. Lines that are blank are skipped. A row with another number of cells, or an object without
// a field that is wanted, is a Row with an error. Errors are a *data.RecordError or *data.LineError.
func Read(path string, pick Picker, row func(r Row) error) error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".tsv", ".txt", ".csv":
		return readLines(path, ext == ".csv", pick, row)
	case ".json":
		return readJSON(path, pick, row)
	case ".jsonl":
		return readJSONLines(path, pick, row)
	case ".parquet":
		return readParquet(path, pick, row)
	default:
		return &data.RecordError{File: path, Index: -1, Err: fmt.Errorf("rows are read from %s files, not from %q", strings.Join(Formats, ", "), ext)}
	}
}

// valid is a text without bytes that are no UTF-8.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// chosen takes the wanted cells of a row whose file has so many columns, 0 where any number from the last wanted one on is right.
func chosen(at []int, cells []string, columns int, into []string) ([]string, error) {
	most := 0
	for _, i := range at {
		most = max(most, i+1)
	}
	if columns > 0 && len(cells) != columns || len(cells) < most {
		return nil, fmt.Errorf("it has %d columns, not %d", len(cells), max(columns, most))
	}
	into = into[:0]
	for _, i := range at {
		into = append(into, valid(cells[i]))
	}
	return into, nil
}
