package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/geoalign/geoalign/data/internal/parquetfile"
)

// errArrow is the error of a file that pyarrow writes beside .parquet.
var errArrow = errors.New("it is an Arrow file, which is not read: write it as .parquet, as " +
	"pyarrow.parquet.write_table or to_parquet of datasets do")

// Parquet is an open .parquet file. It belongs to one goroutine.
type Parquet struct {
	file *parquet.File
	tops []*parquet.Column
}

// OpenParquet opens a .parquet file of size bytes, which is read as long as its columns are.
func OpenParquet(r io.ReaderAt, size int64) (p *Parquet, err error) {
	defer parquetfile.Recovered(&err)
	var head [6]byte
	if n, _ := r.ReadAt(head[:], 0); bytes.Equal(head[:n], []byte("ARROW1")) {
		return nil, errArrow
	}
	f, err := parquetfile.Open(r, size, parquet.ReadBufferSize(1<<18))
	if err != nil {
		return nil, err
	}
	return &Parquet{f, f.Root().Columns()}, nil
}

// Names are those of the columns.
func (p *Parquet) Names() (names []string) {
	for _, c := range p.tops {
		names = append(names, c.Name())
	}
	return names
}

// Groups are the numbers of rows of the row groups.
func (p *Parquet) Groups() (rows []int64) {
	for _, g := range p.file.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	return rows
}

// column finds a column of any kind.
func (p *Parquet) column(name string) (*parquet.Column, error) {
	if c := p.file.Root().Column(name); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no column %q: the columns are %q", name, p.Names())
}

// Column is values of a file, those of each row group in pages of their own.
type Column struct {
	leaf   *parquet.Column
	chunks []*parquetfile.Chunk
}

// values are those of a leaf. A leaf that the library does not read rightly is an error; nil stays nil.
func (p *Parquet) values(leaf *parquet.Column) (*Column, error) {
	if leaf == nil {
		return nil, nil
	}
	chunks, err := parquetfile.Chunks(p.file, leaf)
	if err != nil {
		return nil, err
	}
	return &Column{leaf, chunks}, nil
}

// name is that of the column of the file.
func (c *Column) name() string { return c.leaf.Path()[0] }

// fault is an error of reading.
func (c *Column) fault(err error) error {
	return parquetfile.Fault(fmt.Errorf("column %q: %w", c.name(), err))
}

// each calls take with the values of a row group, some at a time, and ends early with its error.
func (c *Column) each(group int, take func(values []parquet.Value) error) (err error) {
	pages, err := c.chunks[group].Pages()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.fault(err)
		}
		err = c.eachOf(page, take)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

// eachOf is each of a page.
func (c *Column) eachOf(page parquet.Page, take func(values []parquet.Value) error) error {
	var buffer [256]parquet.Value
	for r := page.Values(); ; {
		n, err := r.ReadValues(buffer[:])
		if err := take(buffer[:n]); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.fault(err)
		}
	}
}

// only is the leaf below a column in which lists and groups hold one thing each.
func only(c *parquet.Column) *parquet.Column {
	for len(c.Columns()) == 1 {
		c = c.Columns()[0]
	}
	return c
}

// Picture finds a column of pictures: a group of bytes and path, bytes, or paths. The other is nil.
func (p *Parquet) Picture(name string) (content, path *Column, err error) {
	defer parquetfile.Recovered(&err)
	c, err := p.column(name)
	if err != nil {
		return nil, nil, err
	}
	is := func(c *parquet.Column) bool {
		return c != nil && c.Leaf() && c.Type().Kind() == parquet.ByteArray && c.MaxRepetitionLevel() == 0
	}
	of := [2]*parquet.Column{}
	switch {
	case is(c) && isText(c):
		of[1] = c
	case is(c):
		of[0] = c
	case !c.Leaf() && is(c.Column("bytes")):
		if of[0] = c.Column("bytes"); is(c.Column("path")) {
			of[1] = c.Column("path")
		}
	default:
		return nil, nil, fmt.Errorf("column %q is neither a group with bytes, nor bytes, nor a path (got %s): export "+
			"images with datasets' to_parquet", name, c)
	}
	if content, err = p.values(of[0]); err == nil {
		path, err = p.values(of[1])
	}
	return content, path, err
}

// isText says whether a column holds strings, not bytes.
func isText(c *parquet.Column) bool {
	if t := c.Type().LogicalType(); t != nil {
		_, ok := t.Value.(*format.StringType)
		return ok
	}
	return false
}

// Strings finds a column of strings or of lists of strings.
func (p *Parquet) Strings(name string) (list *Column, err error) {
	defer parquetfile.Recovered(&err)
	c, err := p.column(name)
	if err != nil {
		return nil, err
	}
	leaf := only(c)
	if !leaf.Leaf() || leaf.Type().Kind() != parquet.ByteArray || leaf.MaxRepetitionLevel() > 1 {
		return nil, fmt.Errorf("column %q is neither a string nor a list of strings (got %s)", name, c)
	}
	return p.values(leaf)
}

// Strings returns the strings of each row of a row group, and how many were no UTF-8. What is null is left out. Of a
// nil column no row has one.
func (c *Column) Strings(group int, rows int64) (list [][]string, garbled int, err error) {
	defer parquetfile.Recovered(&err)
	if c == nil {
		return make([][]string, rows), 0, nil
	}
	list = make([][]string, 0, min(rows, 1<<16))
	err = c.each(group, func(values []parquet.Value) error {
		for _, v := range values {
			if v.RepetitionLevel() == 0 {
				list = append(list, nil)
			}
			n := len(list)
			switch {
			case n == 0 || int64(n) > rows:
				return c.fault(errors.New("its values are not those of its rows"))
			case v.IsNull():
			default:
				s := string(v.ByteArray())
				if !utf8.ValidString(s) {
					garbled++
				}
				list[n-1] = append(list[n-1], valid(s))
			}
		}
		return nil
	})
	if err == nil && int64(len(list)) != rows {
		err = c.fault(fmt.Errorf("it has %d rows and its row group %d", len(list), rows))
	}
	return list, garbled, err
}

// Floats calls emit with each row of a column of lists of FLOAT, DOUBLE or FLOAT16; an empty name is the only one of
// that kind. pick chooses among several. told hears how many rows of how many are read.
func (p *Parquet) Floats(pick func(names []string) (string, error), emit func([]float32) error,
	told func(done, of int)) (err error) {
	defer parquetfile.Recovered(&err)
	var names []string
	leaves := map[string]*parquet.Column{}
	for _, top := range p.tops {
		if leaf := only(top); leaf.Leaf() && leaf.MaxRepetitionLevel() == 1 && parquetfile.Float(p.file, leaf) != nil {
			names, leaves[top.Name()] = append(names, top.Name()), leaf
		}
	}
	name, err := pick(names)
	if err != nil {
		return err
	}
	leaf := leaves[name]
	c, err := p.values(leaf)
	if err != nil {
		return err
	}
	f := floatRows{emit: emit, number: parquetfile.Float(p.file, leaf), filled: leaf.MaxDefinitionLevel()}
	rows := p.file.NumRows()
	for group := range c.chunks {
		err := c.each(group, func(values []parquet.Value) error {
			for _, v := range values {
				if err := f.add(v); err != nil {
					return err
				}
			}
			told(int(f.count), int(rows))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := f.end(); err != nil {
		return err
	}
	if f.count != rows {
		return fmt.Errorf("column %q has %d rows and the file %d: copy it again", name, f.count, rows)
	}
	return nil
}

// floatRows puts values together to rows.
type floatRows struct {
	emit   func([]float32) error
	number func(parquet.Value) float32
	filled int   // definition level of a value that is there
	count  int64 // rows begun
	row    []float32
}

// add takes a value. The first of a row has the repetition level 0.
func (p *floatRows) add(v parquet.Value) error {
	if v.RepetitionLevel() == 0 {
		if err := p.end(); err != nil {
			return err
		}
		p.count++
	} else if p.count == 0 {
		return errors.New("its first value goes on with a row: copy the file again")
	}
	if v.DefinitionLevel() != p.filled {
		return fmt.Errorf("row %d is null or empty, or has a value that is null: write a list of numbers for every row",
			p.count-1)
	}
	p.row = append(p.row, p.number(v))
	if len(p.row) > math.MaxInt32 {
		return fmt.Errorf("row %d has more than %d numbers", p.count-1, math.MaxInt32)
	}
	return nil
}

// end gives the row that was put together.
func (p *floatRows) end() error {
	if p.count == 0 {
		return nil
	}
	err := p.emit(p.row)
	p.row = p.row[:0]
	return err
}

// textColumn finds a column of texts or numbers, and what makes a text of each.
func (p *Parquet) textColumn(leaf *parquet.Column) (*Column, func(parquet.Value) string, error) {
	if !leaf.Leaf() || leaf.MaxRepetitionLevel() > 0 {
		return nil, nil, fmt.Errorf("column %q is not supported: it holds lists or groups (got %s): texts and numbers "+
			"are read", leaf.Name(), leaf)
	}
	text, err := parquetfile.Text(p.file, leaf)
	if err != nil {
		return nil, nil, err
	}
	c, err := p.values(leaf)
	return c, text, err
}

// readParquet reads the rows of a .parquet file, a row group at a time.
func readParquet(path string, pick Picker, row func(r Row) error) (err error) {
	in, size, err := open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	rows := parquetRows{path: path, row: row}
	if err := rows.read(in, size, pick); err != nil {
		return Whole(path, err)
	}
	return rows.stopped
}

// parquetRows hands on rows of texts.
type parquetRows struct {
	path    string
	row     func(r Row) error
	line    int
	stopped error // by row
}

// read reads a file of size bytes. An error is one of the file.
func (x *parquetRows) read(in io.ReaderAt, size int64, pick Picker) (err error) {
	defer parquetfile.Recovered(&err)
	p, err := OpenParquet(in, size)
	if err != nil {
		return err
	}
	picked, err := pick(p.Names())
	if err == nil && picked.Headless {
		err = fmt.Errorf("its columns %q are none that are known", p.Names())
	}
	if err != nil {
		return err
	}
	columns := make([]*Column, len(picked.At))
	texts := make([]func(parquet.Value) string, len(picked.At))
	for k, i := range picked.At {
		if columns[k], texts[k], err = p.textColumn(p.tops[i]); err != nil {
			return err
		}
	}
	values, cells := make([][]string, len(columns)), make([]string, len(columns))
	for group := range p.Groups() {
		for k, c := range columns {
			if values[k], err = c.texts(group, texts[k], values[k][:0]); err != nil {
				return err
			}
			if len(values[k]) != len(values[0]) {
				return fmt.Errorf("column %q has %d rows and %q has %d: copy the file again", c.name(), len(values[k]),
					columns[0].name(), len(values[0]))
			}
		}
		for i := range values[0] {
			x.line++
			for k := range cells {
				cells[k] = values[k][i]
			}
			if x.stopped = x.row(Row{Line: x.line, Cells: cells, path: x.path, entry: true}); x.stopped != nil {
				return nil
			}
		}
	}
	if x.line == 0 {
		return errors.New("it has no row")
	}
	return nil
}

// texts appends the values of a row group as texts; null is the empty text.
func (c *Column) texts(group int, text func(parquet.Value) string, list []string) ([]string, error) {
	err := c.each(group, func(values []parquet.Value) error {
		for _, v := range values {
			if v.IsNull() {
				list = append(list, "")
			} else {
				list = append(list, valid(text(v)))
			}
		}
		return nil
	})
	return list, err
}
