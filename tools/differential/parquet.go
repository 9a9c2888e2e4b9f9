package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/table"
)

type parquetCase struct {
	Name, Kind, Writer, Settings, Error string

	Plain   bool
	Rows    *int       // nil: no matrix
	Columns []string   // of a table
	Cells   [][]string // by column, or the captions of each row
	Floats  []bool     // of a column: numbers are compared as such
}

// compareParquet compares the rows of .parquet files of four writers with those that pyarrow reads of them. A plain
// file must be read; what a file has that is not read must be named so, and no sound file may be called damaged.
func compareParquet(o *options) (*result, error) {
	var cases []parquetCase
	if err := o.cases("parquet.py", &cases, "pyarrow", "duckdb", "polars", "fastparquet"); err != nil {
		return nil, err
	}
	r, unwritten, bad, refused := new(result), 0, 0, map[string]int{}
	for _, c := range cases {
		if c.Error != "" {
			unwritten++
			continue
		}
		r.cases++
		path := filepath.Join(o.dir, c.Name)
		var err error
		switch {
		case c.Kind == "table":
			err = sameTable(path, c)
		case c.Kind == "captions":
			err = sameCaptions(path, c)
		case c.Rows == nil:
			if err = sameMatrix(path, "x", ""); err == nil {
				r.differ("%s %s: rows that are no matrix pass", c.Writer, c.Settings)
			}
			if !claimsDamage(err) {
				bad++
				continue
			}
		default:
			err = sameMatrix(path, "x", path+".npy")
		}
		switch {
		case err == nil:
		case c.Plain || claimsDamage(err) || !strings.Contains(err.Error(), "not supported"):
			r.differ("%s %s %s: %v", c.Writer, c.Name, c.Settings, err)
		default:
			refused[words(err)]++
		}
	}
	r.note("%d more that their writer or pyarrow refuses", unwritten)
	r.note("%d with rows that are null, empty or of other lengths: refused, and no damage claimed", bad)
	r.counts("refused", refused)
	return r, nil
}

// claimsDamage tells whether an error says that a file is damaged.
func claimsDamage(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "copy") || strings.Contains(err.Error(), "damaged"))
}

// words is an error from "not supported" on.
func words(err error) string {
	s := err.Error()
	_, behind, _ := strings.Cut(s, "not supported: ")
	return behind
}

// sameMatrix reads a matrix by way of a copy and compares it with a .npy file, if one is named.
func sameMatrix(path, tensor, want string) error {
	cache, err := os.MkdirTemp(filepath.Dir(path), "cache")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	got, err := features.OpenSource(path, tensor, cache)
	if err != nil || want == "" {
		return err
	}
	defer got.Close()
	theirs, err := features.OpenMatrix(want, "")
	if err != nil {
		return err
	}
	defer theirs.Close()
	if got.Rows() != theirs.Rows() || got.Width() != theirs.Width() {
		return fmt.Errorf("%dx%d numbers, want %dx%d", got.Rows(), got.Width(), theirs.Rows(), theirs.Width())
	}
	a, b := make([]float32, got.Width()), make([]float32, got.Width())
	for i := range got.Rows() {
		if err := got.Row(i, a); err != nil {
			return err
		}
		if err := theirs.Row(i, b); err != nil {
			return err
		}
		for k := range a {
			if math.Float32bits(a[k]) != math.Float32bits(b[k]) {
				return fmt.Errorf("row %d, column %d is %v, want %v", i, k, a[k], b[k])
			}
		}
	}
	return nil
}

// sameTable compares the cells of a table.
func sameTable(path string, c parquetCase) error {
	for k, name := range c.Columns {
		n := 0
		err := table.Read(path, func([]string) (table.Columns, error) { return table.Columns{At: []int{k}}, nil },
			func(row table.Row) error {
				if row.Err != nil {
					return row.Err
				}
				if n >= len(c.Cells[k]) {
					return fmt.Errorf("column %s has more than %d rows", name, n)
				}
				got, want := row.Cells[0], c.Cells[k][n]
				same := got == want
				if !same && c.Floats[k] && got != "" && want != "" {
					x, err := strconv.ParseFloat(got, 64)
					y, _ := strconv.ParseFloat(want, 64)
					same = err == nil && float32(x) == float32(y)
				}
				if !same {
					return fmt.Errorf("column %s, row %d: %.80q, want %.80q", name, n, got, want)
				}
				n++
				return nil
			})
		if err == nil && n != len(c.Cells[k]) {
			err = fmt.Errorf("column %s has %d rows, want %d", name, n, len(c.Cells[k]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameCaptions compares the captions of each row.
func sameCaptions(path string, c parquetCase) error {
	p, err := data.OpenParquet("", []string{path}, data.ParquetConfig{Image: "image", Caption: "caption"},
		data.Options{})
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Len() != len(c.Cells) {
		return fmt.Errorf("%d rows, want %d", p.Len(), len(c.Cells))
	}
	for i, want := range c.Cells {
		if got := p.Captions(i); !slices.Equal(got, want) {
			return fmt.Errorf("row %d has the captions %.80q, want %.80q", i, got, want)
		}
	}
	return nil
}
