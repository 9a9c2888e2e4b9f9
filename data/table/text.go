package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// Layout says how the cells of a table lie on its lines.
type Layout struct {
	Separator rune // between cells; 0: a comma, or a tab without quoting where the first line has one
	Lazy      bool // quotation marks may stand anywhere, see encoding/csv
	Unquoted  bool // quotation marks are characters like any others: a line is a row, each separator in it ends a cell
}

// Text is a table of lines. Scan reads all rows, and with Index a row can be read again. Methods but Scan may be called
// from several goroutines.
type Text struct {
	Index bool // keep where rows lie, 8 bytes for each

	path        string
	r           io.ReaderAt
	begin, size int64
	layout      Layout
	places      []int64 // of the rows, and of the end; the first row is the line that names the columns
}

// OpenText opens a table. Close it after use.
func OpenText(path string, layout Layout) (*Text, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	t, err := NewText(path, f, size, layout)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// NewText is the table in a file of size bytes, which Close closes where it can be. It refuses what is not a text.
func NewText(path string, r io.ReaderAt, size int64, layout Layout) (*Text, error) {
	head := make([]byte, min(size, 1<<15))
	if n, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, pathError(path, err)
	} else if n < len(head) {
		head = head[:n]
	}
	text := files.WithoutMark(head)
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if reason := noText(string(first)); reason != nil {
		return nil, &LineError{path, 1, reason}
	}
	if layout.Separator == 0 {
		layout.Separator = ','
		if bytes.IndexByte(first, '\t') >= 0 {
			layout.Separator, layout.Unquoted = '\t', true
		}
	}
	return &Text{path: path, r: r, size: size, begin: int64(len(head) - len(text)), layout: layout}, nil
}

// Path is that of the file.
func (t *Text) Path() string { return t.path }

// Close closes the file.
func (t *Text) Close() error {
	if c, ok := t.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// ReadAt reads bytes of the file.
func (t *Text) ReadAt(b []byte, off int64) (int, error) { return t.r.ReadAt(b, off) }

// rest reads from behind the byte order mark.
func (t *Text) rest() io.Reader { return io.NewSectionReader(t.r, t.begin, t.size-t.begin) }

// errLongRow ends the reading of a cell in quotation marks that has no end.
var errLongRow = fmt.Errorf(
	"more than %d MiB: close the quotation mark of the cell that goes on, and end lines with \\n or \\r\\n", maxRow>>20)

// ErrOpenCell is a last cell in quotation marks that does not end, with Layout.Lazy.
var ErrOpenCell = errors.New("a quotation mark is never closed: a cell that begins with one ends with one")

// Scan calls take for each row with its line, the one that names the columns among them, and ends early with its error.
// The next row overwrites cells. A row that cannot be told apart is a *LineError that wraps an error of encoding/csv.
func (t *Text) Scan(take func(line int, cells []string) error) error {
	in := &rowLimit{r: t.rest()}
	rows := t.layout.rows(in)
	t.places = t.places[:0]
	for line := 1; ; {
		t.mark(t.begin + rows.InputOffset())
		in.end = rows.InputOffset() + maxRow + readAhead
		cells, err := rows.Read()
		bad, broken := errors.AsType[*csv.ParseError](err)
		switch {
		case err == io.EOF:
			return t.closed(line)
		case broken:
			return &LineError{t.path, bad.StartLine,
				fmt.Errorf("it is not a row of comma-separated values (%w): write "+
					"a quotation mark within a cell twice, and close that of the cell", bad.Err)}
		case errors.Is(err, errLongLine):
			return &LineError{t.path, rows.Line(), err}
		case errors.Is(err, errLongRow):
			return &LineError{t.path, line, fmt.Errorf("a row behind the one that begins here has %w", err)}
		case err != nil:
			return pathError(t.path, err)
		}
		line = rows.Line()
		if err := take(line, cells); err != nil {
			return err
		}
	}
}

// mark keeps where a row begins, or only where the last one does.
func (t *Text) mark(at int64) {
	if !t.Index {
		t.places = append(t.places[:0], t.places[max(0, len(t.places)-1):]...)
	}
	t.places = append(t.places, at)
}

// Rows is the number of rows behind the first one that Scan met.
func (t *Text) Rows() int { return max(0, len(t.places)-2) }

// Offset is how far Scan is in the file: where the row begins that take has, or at the end that of the file.
func (t *Text) Offset() int64 { return t.places[len(t.places)-1] }

// Row reads row i behind the first one again, with Index.
func (t *Text) Row(i int) ([]string, error) {
	b, err := t.bytes(i+1, 0)
	if err != nil {
		return nil, err
	}
	return t.layout.rows(bytes.NewReader(b)).Read()
}

// bytes of a row, with room for more.
func (t *Text) bytes(i, room int) ([]byte, error) {
	at := t.places[i : i+2]
	b := make([]byte, at[1]-at[0], at[1]-at[0]+int64(room))
	if n, err := t.r.ReadAt(b, at[0]); n < len(b) {
		return nil, err
	}
	return b, nil
}

// closed refuses a last row that ends within a cell in quotation marks, of which encoding/csv does not complain with
// Lazy: the empty lines behind it are then the cell's.
func (t *Text) closed(line int) error {
	if !t.layout.Lazy || t.layout.Unquoted || len(t.places) < 2 {
		return nil
	}
	const lines = "\n\n"
	b, err := t.bytes(len(t.places)-2, len(lines))
	if err != nil {
		return pathError(t.path, err)
	}
	c := t.layout.rows(bytes.NewReader(append(b, lines...)))
	if _, err := c.Read(); err != nil || c.InputOffset() > int64(len(b))+1 {
		return &LineError{t.path, line, ErrOpenCell}
	}
	return nil
}

// rowReader reads one row after the other. A row may be overwritten by the next one.
type rowReader interface {
	Read() (cells []string, err error)
	InputOffset() int64 // the byte behind the row that was read last
	Line() int          // on which that row begins, from 1
}

// rows reads the rows of a layout, which may have any number of cells.
func (l Layout) rows(r io.Reader) rowReader {
	if l.Unquoted {
		return &unquotedRows{newLineReader(r, maxRow), string(l.Separator)}
	}
	c := csv.NewReader(bufio.NewReaderSize(r, readAhead))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord, c.ReuseRecord = l.Separator, l.Lazy, -1, true
	return quotedRows{c}
}

// quotedRows are rows by the rules of encoding/csv.
type quotedRows struct{ *csv.Reader }

// Line implements rowReader, for a row that was read.
func (q quotedRows) Line() int {
	line, _ := q.FieldPos(0)
	return line
}

// unquotedRows are rows without any quoting: a row is a line, and every separator in it ends a cell. Empty lines are no
// rows.
type unquotedRows struct {
	lines     *lineReader
	separator string
}

// Read implements rowReader.
func (u *unquotedRows) Read() ([]string, error) {
	for {
		line, err := u.lines.next()
		if err != nil {
			return nil, err
		}
		if len(line) > 0 {
			return strings.Split(string(line), u.separator), nil
		}
	}
}

// InputOffset implements rowReader.
func (u *unquotedRows) InputOffset() int64 { return u.lines.offset }

// Line implements rowReader.
func (u *unquotedRows) Line() int { return u.lines.line }

// rowLimit reads a table up to an end that moves with its rows, so that one without an end is not read into memory.
type rowLimit struct {
	r       io.Reader
	at, end int64
}

// Read implements io.Reader.
func (l *rowLimit) Read(p []byte) (int, error) {
	if l.at >= l.end {
		return 0, errLongRow
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.end-l.at)])
	l.at += int64(n)
	return n, err
}

// errEmpty is what is wrong with a file without a line.
var errEmpty = errors.New("it is empty: begin with a line that names the columns")

// Read calls row for each row with the columns that pick chooses, as the function Read does.
func (t *Text) Read(pick Picker, row func(r Row) error) error {
	p := picked{path: t.path, pick: pick, row: row, unquoted: t.layout.Unquoted}
	err := t.Scan(p.take)
	if err == nil && !p.named {
		err = Whole(t.path, errEmpty)
	}
	return err
}

// picked hands on the rows of a table with the columns that are wanted.
type picked struct {
	path     string
	pick     Picker
	row      func(r Row) error
	unquoted bool
	columns  Columns
	width    int // columns of the file; 0: any number
	named    bool
	cells    []string
}

// take reads one line.
func (t *picked) take(line int, cells []string) error {
	if t.unquoted && !slices.ContainsFunc(cells, func(s string) bool { return strings.TrimSpace(s) != "" }) {
		return nil // a blank line
	}
	if !t.named {
		c, err := t.pick(cells)
		if err != nil {
			return &LineError{File: t.path, Line: line, Err: err}
		}
		t.columns, t.named = c, true
		if !c.Headless {
			t.width = len(cells)
			return nil
		}
	}
	r := Row{Line: line, path: t.path}
	if r.Cells, r.Err = chosen(t.columns.At, cells, t.width, t.cells); r.Err == nil {
		t.cells = r.Cells
	}
	return t.row(r)
}

// chosen takes the wanted cells of a row whose file has so many columns, 0 where any number from the last wanted one on
// is right.
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
