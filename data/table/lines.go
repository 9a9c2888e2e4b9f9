package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/files"
)

// maxLine is the largest line of a table in bytes.
const maxLine = 16 << 20

// errEmpty is what is wrong with a file without a line.
var errEmpty = errors.New("it is empty: begin with a line that names the columns")

// Lines calls take for each line of a text file with its number from 1, without the byte order mark and what ends the line; bytes
// that are no UTF-8 are U+FFFD. It ends early with the error of take. Other errors name the file: it is not there, a
// line is too long, or it is compressed or UTF-16.
func Lines(path string, take func(n int, line string) error) error {
	in, err := open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.lines(take)
}

// text is a text file that is read.
type text struct {
	*bufio.Reader
	path string
	file *os.File
}

// open opens a text file and reads what is before its first line.
func open(path string) (*text, error) {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	t := &text{bufio.NewReaderSize(f, 1<<16), path, f}
	files.SkipMark(t.Reader)
	if reason := noText(t.first()); reason != nil {
		return nil, errors.Join(&data.LineError{File: path, Line: 1, Err: reason}, f.Close())
	}
	return t, nil
}

// Close closes the file.
func (t *text) Close() error { return t.file.Close() }

// first is the first line, or its beginning, which is still to be read.
func (t *text) first() string {
	start, _ := t.Peek(1 << 15)
	line, _, _ := strings.Cut(string(start), "\n")
	return line
}

// noText says why a file whose first line begins so is no text, nil where it may be one.
func noText(line string) error {
	switch {
	case strings.HasPrefix(line, "\x1f\x8b"):
		return errors.New("it is compressed: unpack it, as gunzip does")
	case strings.Contains(line, "\x00"):
		return errors.New("it is UTF-16 or no text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8 does it)")
	}
	return nil
}

// lines calls take for each line.
func (t *text) lines(take func(n int, line string) error) error {
	s := bufio.NewScanner(t)
	s.Buffer(nil, maxLine)
	n := 0
	for s.Scan() {
		n++
		if err := take(n, valid(s.Text())); err != nil {
			return err
		}
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &data.LineError{File: t.path, Line: n + 1, Err: fmt.Errorf("it has more than %d MiB: end lines with \\n or \\r\\n", maxLine>>20)}
	} else if err != nil {
		return pathError(t.path, err)
	}
	return nil
}

// readLines reads a table of lines, with quotation marks and commas where it is a .csv file without tabs.
func readLines(path string, comma bool, pick Picker, row func(r Row) error) error {
	in, err := open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	t := table{path: path, pick: pick, row: row}
	if comma && !strings.Contains(in.first(), "\t") {
		err = t.readCommas(in)
	} else {
		err = t.readTabs(in)
	}
	if err == nil && !t.picked {
		err = &data.RecordError{File: path, Index: -1, Err: errEmpty}
	}
	return err
}

// table hands the rows of a table on.
type table struct {
	path    string
	pick    Picker
	row     func(r Row) error
	columns Columns
	width   int // columns of the file; 0: any number
	picked  bool
	cells   []string
}

// take reads one line.
func (t *table) take(line int, cells []string) error {
	if !t.picked {
		c, err := t.pick(cells)
		if err != nil {
			return &data.LineError{File: t.path, Line: line, Err: err}
		}
		t.columns, t.picked = c, true
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

// readTabs reads lines with tabs, in which quotation marks mean nothing.
func (t *table) readTabs(in *text) error {
	return in.lines(func(n int, line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		return t.take(n, strings.Split(line, "\t"))
	})
}

// readCommas reads comma-separated values.
func (t *table) readCommas(in *text) error {
	c := csv.NewReader(in)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	for {
		cells, err := c.Read()
		var bad *csv.ParseError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad):
			return &data.LineError{File: t.path, Line: bad.StartLine, Err: fmt.Errorf("it is no row of comma-separated values (%w): write a quotation mark within a cell twice, and close that of the cell", bad.Err)}
		case err != nil:
			return pathError(t.path, err)
		}
		line, _ := c.FieldPos(0)
		if err := t.take(line, cells); err != nil {
			return err
		}
	}
}

// pathError is an error of reading with the name of its file.
func pathError(path string, err error) error {
	if _, named := errors.AsType[*os.PathError](err); named {
		return fmt.Errorf("data: %w", err)
	}
	return fmt.Errorf("data: %s: %w", path, err)
}
