package table

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// maxRow is the largest line or row of a text file in bytes, and readAhead is how much is read before it is wanted.
const (
	maxRow    = 16 << 20
	readAhead = 1 << 17
)

// Line is a line of a text file.
type Line struct {
	Number   int    // from 1
	Text     string // without the byte order mark and what ends the line
	At, Size int64  // where its bytes lie, with those that end it

	path string
}

// Valid is the text with U+FFFD for bytes that are not UTF-8.
func (l Line) Valid() string { return valid(l.Text) }

// Wrong is an error of the line with its file and its place.
func (l Line) Wrong(err error) error { return &LineError{File: l.path, Line: l.Number, Err: err} }

// Lines yields the lines of a text file, each of at most so many bytes (0: 16 MiB). An error ends them. It names the
// file: it is not there, a line is too long, or it is compressed or UTF-16.
func Lines(path string, most int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		t, err := OpenText(path, Layout{})
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer t.Close()
		t.Lines(most, 0)(yield)
	}
}

// ReadLines returns the valid texts of all lines of a file.
func ReadLines(path string) (list []string, err error) {
	for l, err := range Lines(path, 0) {
		if err != nil {
			return nil, err
		}
		list = append(list, l.Valid())
	}
	return list, nil
}

// LinesOf is Lines of the bytes of a file.
func LinesOf(path string, b []byte) iter.Seq2[Line, error] {
	t, err := NewText(path, bytes.NewReader(b), int64(len(b)), Layout{})
	if err != nil {
		return func(yield func(Line, error) bool) { yield(Line{}, err) }
	}
	return t.Lines(0, 0)
}

// Lines is the function Lines of an open file. Of each line the text is the first keep bytes (0: all).
func (t *Text) Lines(most, keep int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		l := newLineReader(t.rest(), cmp.Or(most, maxRow))
		l.keep = cmp.Or(keep, l.most)
		for {
			at := l.offset
			b, err := l.next()
			if err == io.EOF {
				return
			}
			line := Line{Number: l.line, Text: string(b), At: t.begin + at, Size: l.offset - at, path: t.path}
			switch {
			case errors.Is(err, errLongLine):
				err = line.Wrong(err)
			case err != nil:
				err = pathError(t.path, err)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// lineReader reads one line after the other.
type lineReader struct {
	r      *bufio.Reader
	most   int   // bytes that a line may have
	keep   int   // bytes of it that are kept
	offset int64 // behind the line
	line   int   // number of the line, from 1
	buffer []byte
}

func newLineReader(r io.Reader, most int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readAhead), most: most, keep: most}
}

var errLongLine = errors.New("give one text a line, and end lines with \\n or \\r\\n")

// next is the next line without its end, until another one is read. io.EOF comes behind the last one.
func (l *lineReader) next() ([]byte, error) {
	l.line++
	size := 0
	for l.buffer = l.buffer[:0]; ; {
		part, err := l.r.ReadSlice('\n')
		l.buffer = append(l.buffer, part[:min(len(part), l.keep-len(l.buffer))]...)
		size += len(part)
		l.offset += int64(len(part))
		switch {
		case size > l.most:
			limit := fmt.Sprint(l.most, " bytes")
			if l.most >= 1<<20 {
				limit = fmt.Sprint(l.most>>20, " MiB")
			}
			return nil, fmt.Errorf("it has more than %s: %w", limit, errLongLine)
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || size == 0):
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(l.buffer, []byte("\n")), []byte("\r")), nil
	}
}

// noText says why a file whose first line begins so is not text, nil where it may be.
func noText(line string) error {
	switch {
	case strings.HasPrefix(line, gzipMagic):
		return errors.New("it is compressed: unpack it, as gunzip does")
	case strings.Contains(line, "\x00"):
		return errors.New("it is UTF-16 or not text: save it as UTF-8 (iconv -f UTF-16 -t UTF-8 does it)")
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
