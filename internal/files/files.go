// Package files reads files that others made. It reads only what ends: no device, no pipe,
// no folder, and no more bytes than a file of its kind can have.
package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Largest sizes of files in bytes.
const (
	MaxConfig     = 1 << 20  // configurations and matrices of runs
	MaxRecord     = 64 << 20 // what the program itself writes as JSON: states, records, results of a benchmark
	MaxVocabulary = 64 << 20 // vocab.txt and tokenizer.json
	MaxList       = 4 << 30  // lists of images with captions, which are read whole
)

// SizeError says that a file is larger than files of its kind are.
type SizeError struct {
	Path        string
	Size, Limit int64 // bytes
}

// Error says both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the %d that are read of such a file: is it the right one?", e.Path,
		e.Size, e.Limit)
}

// KindError says that a path leads to something else than a file.
type KindError struct {
	Path string
	Mode fs.FileMode
}

// Error says what is there.
func (e *KindError) Error() string {
	kind := "no regular file"
	switch {
	case e.Mode.IsDir():
		kind = "a folder"
	case e.Mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case e.Mode&fs.ModeDevice != 0:
		kind = "a device"
	case e.Mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Sprintf("%s is %s: give a file", e.Path, kind)
}

// Open opens a regular file of at most most bytes, of any number with 0, and returns its
// size. Close it after use.
func Open(path string, most int64) (*os.File, int64, error) {
	if err := CheckPath(path); err != nil {
		return nil, 0, err
	}
	// What is not a file is not opened: to open a pipe waits for its writer.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, 0, &KindError{path, st.Mode()}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	size, err := Regular(f, most)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// Regular refuses an open file that Open would refuse, and returns its size.
func Regular(f *os.File, most int64) (int64, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case !st.Mode().IsRegular():
		return 0, &KindError{f.Name(), st.Mode()}
	case most > 0 && st.Size() > most:
		return 0, &SizeError{f.Name(), st.Size(), most}
	}
	return st.Size(), nil
}

// Read returns the bytes of a file that Open opens.
func Read(path string, most int64) ([]byte, error) {
	f, size, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Rest(f, size, most)
}

// Rest reads an open file of about size bytes to its end. A file that grows beyond most
// meanwhile, or has no size as those that a system makes up, is an error.
func Rest(f *os.File, size, most int64) ([]byte, error) {
	b := make([]byte, 0, size+1) // the byte that finds the end
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case most > 0 && int64(len(b)) > most:
			return nil, &SizeError{f.Name(), int64(len(b)), most}
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}
