package safetensors

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
)

// Spool is the data of a float32 tensor that need not lie in memory: a file without a name
// collects its elements, and Write copies them to their place. So a tensor whose number of rows
// is known only at the end can be written too. Close it after use.
type Spool struct {
	file *os.File
	path string // to be removed at the end; empty: it is gone already
	out  *bufio.Writer
	buf  []byte
	n    int
}

// NewSpool returns an empty spool, whose file lies in the folder dir.
func NewSpool(dir string) (*Spool, error) {
	f, err := files.Temporary(filepath.Join(dir, "rows"))
	if err != nil {
		return nil, err
	}
	s := &Spool{file: f, path: f.Name(), out: bufio.NewWriterSize(f, pieceLen), buf: make([]byte, 0, bufLen)}
	if os.Remove(s.path) == nil { // an open file stays, where the system allows it, until the process ends
		s.path = ""
	}
	return s, nil
}

// Append adds elements at the end.
func (s *Spool) Append(x []float32) error {
	s.n += len(x)
	return writeData(s.out, x, s.buf)
}

// Len returns the number of elements.
func (s *Spool) Len() int { return s.n }

// ReadAt reads elements from element at on.
func (s *Spool) ReadAt(dst []float32, at int) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	b := make([]byte, 4*len(dst))
	if _, err := s.file.ReadAt(b, 4*int64(at)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// copyTo writes all elements, in little endian.
func (s *Spool) copyTo(w io.Writer) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	_, err := io.Copy(w, io.NewSectionReader(s.file, 0, 4*int64(s.n)))
	return err
}

// Close drops the elements.
func (s *Spool) Close() error {
	err := s.file.Close()
	if s.path != "" {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}
