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

// bom is the byte order mark, with which editors of Windows begin a file.
const bom = "\xef\xbb\xbf"

// errEmpty is what is wrong with a file without a line.
var errEmpty = errors.New("it is empty: begin with a line that names the columns")

// readLines reads a table of lines, with quotation marks and commas where it is a .csv file without tabs.
func readLines(path string, comma bool, pick Picker, row func(r Row) error) error {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	if start, _ := in.Peek(len(bom)); string(start) == bom {
		in.Discard(len(bom)) //nolint:errcheck // it was just peeked at
	}
	first, _ := in.Peek(1 << 15)
	line, _, _ := strings.Cut(string(first), "\n")
	if comma && !strings.Contains(line, "\t") {
		return readCommas(path, in, pick, row)
	}
	return readTabs(path, in, pick, row)
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
	r := Row{Line: line}
	if r.Cells, r.Err = chosen(t.columns.At, cells, t.width, t.cells); r.Err == nil {
		t.cells = r.Cells
	}
	return t.row(r)
}

// end says what is wrong with a table that ended.
func (t *table) end() error {
	if !t.picked {
		return &data.RecordError{File: t.path, Index: -1, Err: errEmpty}
	}
	return nil
}

// readTabs reads lines with tabs, in which quotation marks mean nothing.
func readTabs(path string, in io.Reader, pick Picker, row func(r Row) error) error {
	t := table{path: path, pick: pick, row: row}
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	line := 0
	for s.Scan() {
		line++
		text := s.Text()
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := t.take(line, strings.Split(text, "\t")); err != nil {
			return err
		}
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &data.LineError{File: path, Line: line + 1, Err: fmt.Errorf("it has more than %d MiB: end lines with \\n or \\r\\n", maxLine>>20)}
	} else if err != nil {
		return pathError(path, err)
	}
	return t.end()
}

// readCommas reads a table of comma-separated values.
func readCommas(path string, in io.Reader, pick Picker, row func(r Row) error) error {
	t := table{path: path, pick: pick, row: row}
	c := csv.NewReader(in)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	for {
		cells, err := c.Read()
		var bad *csv.ParseError
		switch {
		case err == io.EOF:
			return t.end()
		case errors.As(err, &bad):
			return &data.LineError{File: path, Line: bad.StartLine, Err: fmt.Errorf("it is no row of comma-separated values (%w): write a quotation mark within a cell twice, and close that of the cell", bad.Err)}
		case err != nil:
			return pathError(path, err)
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
