// Package table is the source of rows of all lists and tables: of text with tabs, commas or another separator (CSV,
// TSV), JSON, JSON lines, Parquet and tar shards. It knows the form of a file, where each row lies in it, and no data
// set: which fields mean what is said by who reads a list.
//
//	err := table.Read("dev.tsv", func(columns []string) (table.Columns, error) {
//		return table.Columns{At: []int{0, 2}}, nil
//	}, func(r table.Row) error { ... })
//
// Read hands on rows with cells of text, whatever the form of the file. Entries are those of a JSON file with fields of
// any type. Text and Parquet can also be read at any row, which is how tables of millions of pictures are used, and
// Members are those of a tar file with the places of their bytes.
package table

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Row is a row of a file, with the cells that were asked for.
type Row struct {
	Line  int             // of the file from 1, or of JSON and parquet the row from 1
	Cells []string        // valid UTF-8; the next row overwrites the slice
	Raw   json.RawMessage // of Objects the object, instead of cells
	Err   error           // why the row cannot be used: Cells is then nil

	path  string
	entry bool // of JSON or parquet
}

// Wrong is an error of the row with its file and its place: a *LineError, or of JSON and parquet a *RecordError.
func (r Row) Wrong(err error) error {
	if r.entry {
		return &RecordError{File: r.path, Index: r.Line - 1, Err: err}
	}
	return &LineError{File: r.path, Line: r.Line, Err: err}
}

// Columns says which columns of a file are wanted.
type Columns struct {
	At       []int // places of the columns among those of the file
	Headless bool  // the first line of the table is a row and names no columns
}

// Picker chooses columns by the names that a file has, or of a table without names by the cells of its first line.
type Picker func(columns []string) (Columns, error)

// Named picks the columns of some names. missing is the error of the one that a file lacks, by its place among the
// names.
func Named(names []string, missing func(k int, columns []string) error) Picker {
	return func(columns []string) (c Columns, err error) {
		for k, name := range names {
			i := slices.Index(columns, name)
			if i < 0 {
				return c, missing(k, columns)
			}
			c.At = append(c.At, i)
		}
		return c, nil
	}
}

// Formats are the endings of files that Read reads.
var Formats = []string{".tsv", ".txt", ".csv", ".json", ".jsonl", ".parquet"}

// Read calls row for each row of a file, in order, and ends early with its error. The name of the file says what it is.
//
//   - .tsv and .txt: a line for each row with tabs between the cells. A quotation mark is a character like any other,
//     as in the files of GLUE.
//   - .csv: cells in quotation marks where they need them; a table with tabs in its first line is read as .tsv.
//   - .json: a list or an object of objects. .jsonl: an object on each line. The columns are the fields of the first
//     object.
//   - .parquet: columns of texts and numbers.
//
// A byte order mark is left out. Lines that are blank are skipped. A row with another number of cells, or an object
// without a field that is wanted, is a Row with an error. Errors are a *RecordError or *LineError.
func Read(path string, pick Picker, row func(r Row) error) error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".tsv", ".txt", ".csv":
		layout := Layout{Separator: '\t', Unquoted: true}
		if ext == ".csv" {
			layout = Layout{}
		}
		t, err := OpenText(path, layout)
		if err != nil {
			return err
		}
		defer t.Close()
		return t.Read(pick, row)
	case ".json":
		return readJSON(path, pick, row)
	case ".jsonl":
		return readJSONLines(path, pick, row)
	case ".parquet":
		return readParquet(path, pick, row)
	case ".arrow", ".feather":
		return Whole(path, errArrow)
	default:
		return Whole(path, fmt.Errorf("rows are read from %s files, not from %q", strings.Join(Formats, ", "), ext))
	}
}

// valid is a text without bytes that are not UTF-8.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
