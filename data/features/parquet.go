package features

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data/internal/parquetfile"
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

func readParquet(r io.ReaderAt, size int64, column string, emit func([]float32) error, told func(done, of int)) (err error) {
	defer parquetfile.Recovered(&err)
	f, err := parquetfile.Open(r, size)
	if err != nil {
		return err
	}
	leaf, number, err := parquetColumn(f, column)
	if err != nil {
		return err
	}
	chunks, err := parquetfile.Chunks(f, leaf)
	if err != nil {
		return err
	}
	p := parquetReader{emit: emit, told: told, number: number, filled: leaf.MaxDefinitionLevel(), rows: f.NumRows()}
	for _, chunk := range chunks {
		if err := p.read(chunk); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if p.count != p.rows {
		return fmt.Errorf("column %q has %d rows and the file %d: copy it again", leaf.Path()[0], p.count, p.rows)
	}
	return nil
}

// parquetColumn finds the values of a column of lists of floats, and what makes a number of each.
func parquetColumn(f *parquet.File, name string) (*parquet.Column, func(parquet.Value) float32, error) {
	var names []string
	leaves := map[string]*parquet.Column{}
	for _, top := range f.Root().Columns() {
		leaf := top
		for len(leaf.Columns()) == 1 {
			leaf = leaf.Columns()[0]
		}
		if !leaf.Leaf() || leaf.MaxRepetitionLevel() != 1 {
			continue
		}
		if parquetfile.Float(f, leaf) != nil {
			names, leaves[top.Name()] = append(names, top.Name()), leaf
		}
	}
	if name == "" && len(names) == 0 {
		return nil, nil, errors.New("it has no column of lists of FLOAT, DOUBLE or FLOAT16: write the features as one list a row")
	}
	name, err := choose(name, names)
	if err != nil {
		return nil, nil, errors.New(strings.NewReplacer("it has no tensor", "it has no column of lists of FLOAT, DOUBLE or FLOAT16", "it holds the tensors", "it has the columns").Replace(err.Error()))
	}
	return leaves[name], parquetfile.Float(f, leaves[name]), nil
}

// parquetReader puts values together to rows.
type parquetReader struct {
	emit   func([]float32) error
	told   func(done, of int)
	number func(parquet.Value) float32
	filled int // definition level of a value that is there
	rows   int64
	count  int64 // rows begun
	row    []float32
}

// read reads the values of a row group.
func (p *parquetReader) read(chunk *parquetfile.Chunk) (err error) {
	pages, err := chunk.Pages()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pages.Close()) }()
	buffer := make([]parquet.Value, 4096)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return parquetfile.Fault(fmt.Errorf("after %d rows: %w", p.count, err))
		}
		err = p.page(page.Values(), buffer)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

func (p *parquetReader) page(values parquet.ValueReader, buffer []parquet.Value) error {
	for {
		n, err := values.ReadValues(buffer)
		for _, v := range buffer[:n] {
			if err := p.add(v); err != nil {
				return err
			}
		}
		p.told(int(p.count), int(p.rows))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return parquetfile.Fault(fmt.Errorf("after %d rows: %w", p.count, err))
		}
	}
}

// add takes a value. The first of a row has the repetition level 0.
func (p *parquetReader) add(v parquet.Value) error {
	if v.RepetitionLevel() == 0 {
		if err := p.end(); err != nil {
			return err
		}
		p.count++
	} else if p.count == 0 {
		return errors.New("its first value goes on with a row: copy the file again")
	}
	if v.DefinitionLevel() != p.filled {
		return fmt.Errorf("row %d is null or empty, or has a value that is null: write a list of numbers for every row", p.count-1)
	}
	p.row = append(p.row, p.number(v))
	if len(p.row) > math.MaxInt32 {
		return fmt.Errorf("row %d has more than %d numbers", p.count-1, math.MaxInt32)
	}
	return nil
}

// end gives the row that was put together.
func (p *parquetReader) end() error {
	if p.count == 0 {
		return nil
	}
	err := p.emit(p.row)
	p.row = p.row[:0]
	return err
}
