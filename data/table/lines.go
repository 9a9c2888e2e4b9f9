package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// maxRow is the largest line or row of a text file in bytes, and readAhead is how much is read before it is wanted.
const (
	maxRow    = 16 << 20
	readAhead = 1 << 17
)

var errLongLine = fmt.Errorf("it has more than %d MiB: end lines with \\n or \\r\\n", maxRow>>20)

// Lines calls take for each line of a text file with its number from 1, without the byte order mark and what ends the
// line; bytes that are no UTF-8 are U+FFFD. It ends early with the error of take. Other errors name the file: it is not
// there, a line is too long, or it is compressed or UTF-16.
func Lines(path string, take func(n int, line string) error) error {
	t, err := OpenText(path, Layout{})
	if err != nil {
		return err
	}
	defer t.Close()
	return t.lines(take)
}

// lines is Lines of an open file.
func (t *Text) lines(take func(n int, line string) error) error {
	for l := newLineReader(t.rest()); ; {
		b, err := l.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(l.line, valid(string(b)))
		} else if err == errLongLine {
			err = &LineError{t.path, l.line, err}
		} else {
			err = pathError(t.path, err)
		}
		if err != nil {
			return err
		}
	}
}

// lineReader reads one line after the other.
type lineReader struct {
	r      *bufio.Reader
	offset int64 // behind the line
	line   int   // number of the line, from 1
	buffer []byte
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, readAhead)} }

// next is the next line without its end, until another one is read. io.EOF comes behind the last one.
func (l *lineReader) next() ([]byte, error) {
	l.line++
	for l.buffer = l.buffer[:0]; ; {
		part, err := l.r.ReadSlice('\n')
		l.buffer, l.offset = append(l.buffer, part...), l.offset+int64(len(part))
		switch {
		case len(l.buffer) > maxRow:
			return nil, errLongLine
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || len(l.buffer) == 0):
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(l.buffer, []byte("\n")), []byte("\r")), nil
	}
}

// noText says why a file whose first line begins so is no text, nil where it may be one.
func noText(line string) error {
	switch {
	case strings.HasPrefix(line, gzipMagic):
		return errors.New("it is compressed: unpack it, as gunzip does")
	case strings.Contains(line, "\x00"):
		return errors.New("it is UTF-16 or no text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8 does it)")
	}
	return nil
}

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b"

// pathError is an error of reading with the name of its file.
func pathError(path string, err error) error {
	if _, named := errors.AsType[*os.PathError](err); named {
		return fmt.Errorf("data: %w", err)
	}
	return fmt.Errorf("data: %s: %w", path, err)
}

// open opens a file of any kind.
func open(path string) (*os.File, int64, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("data: %w", err)
	}
	return f, size, nil
}
