package table

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/internal/parquetfile"
	"github.com/geoalign/geoalign/internal/files"
)

// readParquet reads the rows of a .parquet file, a row group at a time.
func readParquet(path string, pick Picker, row func(r Row) error) (err error) {
	in, size, err := files.Open(path, 0)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	defer in.Close()
	fail := func(err error) error { return &data.RecordError{File: path, Index: -1, Err: err} }
	var damaged error
	defer func() {
		if damaged != nil {
			err = fail(damaged)
		}
	}()
	defer parquetfile.Recovered(&damaged)
	file, err := parquetfile.Open(in, size)
	if err != nil {
		return fail(err)
	}
	var names []string
	all := file.Root().Columns()
	for _, c := range all {
		names = append(names, c.Name())
	}
	c, err := pick(names)
	if err == nil && c.Headless {
		err = fmt.Errorf("its columns %q are none that are known", names)
	}
	if err != nil {
		return fail(err)
	}
	chunks := make([][]*parquetfile.Chunk, len(c.At))
	texts := make([]func(parquet.Value) string, len(c.At))
	for k, i := range c.At {
		if x := all[i]; !x.Leaf() || x.MaxRepetitionLevel() > 0 {
			return fail(fmt.Errorf("column %q is not supported: it holds lists or groups (got %s): texts and numbers are read", names[i], x))
		}
		if texts[k], err = parquetfile.Text(file, all[i]); err != nil {
			return fail(err)
		}
		if chunks[k], err = parquetfile.Chunks(file, all[i]); err != nil {
			return fail(err)
		}
	}
	line := 0
	columns := make([][]string, len(c.At))
	cells := make([]string, len(c.At))
	for g := range file.RowGroups() {
		for k, i := range c.At {
			pages, err := chunks[k][g].Pages()
			if err != nil {
				return fail(err)
			}
			if columns[k], err = pageTexts(pages, texts[k], columns[k][:0]); err != nil {
				return fail(parquetfile.Fault(fmt.Errorf("column %q: %w", names[i], err)))
			}
			if len(columns[k]) != len(columns[0]) {
				return fail(fmt.Errorf("column %q has %d rows and %q has %d: copy the file again", names[i], len(columns[k]), names[c.At[0]], len(columns[0])))
			}
		}
		for i := range columns[0] {
			line++
			for k := range cells {
				cells[k] = columns[k][i]
			}
			if err := row(Row{Line: line, Cells: cells, path: path, entry: true}); err != nil {
				return err
			}
		}
	}
	if line == 0 {
		return fail(errors.New("it has no row"))
	}
	return nil
}

// pageTexts appends the values of pages as texts, and closes them; null is the empty text.
func pageTexts(pages parquet.Pages, text func(parquet.Value) string, list []string) (_ []string, err error) {
	defer func() { err = errors.Join(err, pages.Close()) }()
	buffer := make([]parquet.Value, 256)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				if v.IsNull() {
					list = append(list, "")
				} else {
					list = append(list, valid(text(v)))
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return list, err
			}
		}
		parquet.Release(page)
	}
}
