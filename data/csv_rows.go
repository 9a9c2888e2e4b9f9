package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"strings"
)

// rowReader reads the rows of a table one after the other. A row may be overwritten by the next one.
type rowReader interface {
	Read() (row []string, err error)
	InputOffset() int64 // the byte behind the row that was read last
	Line() int          // on which that row begins, from 1
}

// reader of rows by the rules of a configuration.
func (t *Table) reader(r io.Reader, comma rune) rowReader {
	if t.cfg.Unquoted {
		in, ok := r.(*bufio.Reader)
		if !ok {
			in = bufio.NewReader(r)
		}
		return &unquotedRows{r: in, comma: string(comma)}
	}
	c := csv.NewReader(r)
	c.Comma, c.LazyQuotes, c.ReuseRecord = comma, t.cfg.LazyQuotes, true
	return quotedRows{c}
}

// quotedRows are rows by the rules of encoding/csv.
type quotedRows struct{ *csv.Reader }

// Line implements rowReader, for a row that was read.
func (q quotedRows) Line() int {
	line, _ := q.FieldPos(0)
	return line
}

// unquotedRows are rows without any quoting: a row is a line, and every separator in it ends a cell. Empty lines are no rows.
type unquotedRows struct {
	r       *bufio.Reader
	comma   string
	columns int // of the first row; 0 before it
	offset  int64
	line    int
	buffer  []byte
}

// Read implements rowReader.
func (u *unquotedRows) Read() ([]string, error) {
	for {
		line, err := u.next()
		if err != nil {
			return nil, err
		}
		u.line++
		if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(line) == 0 {
			continue
		}
		row := strings.Split(string(line), u.comma)
		if u.columns == 0 {
			u.columns = len(row)
		}
		if len(row) != u.columns {
			return nil, &csv.ParseError{StartLine: u.line, Line: u.line, Column: 1, Err: csv.ErrFieldCount}
		}
		return row, nil
	}
}

// next is the next line with its end. io.EOF comes behind the last one.
func (u *unquotedRows) next() ([]byte, error) {
	u.buffer = u.buffer[:0]
	for {
		part, err := u.r.ReadSlice('\n')
		u.buffer, u.offset = append(u.buffer, part...), u.offset+int64(len(part))
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(u.buffer) > 0:
			return u.buffer, nil
		default:
			return u.buffer, err
		}
	}
}

// InputOffset implements rowReader.
func (u *unquotedRows) InputOffset() int64 { return u.offset }

// Line implements rowReader.
func (u *unquotedRows) Line() int { return u.line }
