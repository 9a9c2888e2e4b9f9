package features

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/process"
)

// npyHeaderText is the header of a file that is written; with spaces it has always one length.
const npyHeaderText = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"

// tempPrefix begins the name of a file that is not whole yet.
const tempPrefix = ".tmp-npy-"

// abandoned is the time without a write after which such a file is one of a process that was killed.
const abandoned = time.Hour

// sweep removes what killed processes left in a folder, which may be as large as all features. What it cannot remove stays.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(files.Literal(dir), tempPrefix+"*")) // the pattern is one
	for _, path := range left {
		if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > abandoned {
			os.Remove(path)
		}
	}
}

// Write writes rows of one width as a .npy file of float32, which gets its name when it is whole. rows hands one after
// another to emit. The process does not end meanwhile, so that a signal finds what was begun removed.
func Write(path string, rows func(emit func([]float32) error) error) error {
	return WriteArray(path, nil, rows)
}

// WriteArray is Write of an array whose rows have a shape; nil: one axis.
func WriteArray(path string, shape []int, rows func(emit func([]float32) error) error) (err error) {
	defer process.Hold()()
	sweep(filepath.Dir(path))
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	const size = 128
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err = w.Write(make([]byte, size)); err != nil {
		return err
	}
	count, width := 0, 1
	for _, n := range shape {
		width *= n
	}
	var b []byte
	err = rows(func(row []float32) error {
		if count == 0 && shape == nil {
			width, shape = len(row), []int{len(row)}
		}
		if len(row) != width || width == 0 {
			return fmt.Errorf("row %d has %d numbers, and row 0 has %d: all rows of a matrix have one width, above 0", count, len(row), width)
		}
		count++
		b = b[:0]
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		_, err := w.Write(b)
		return err
	})
	if err == nil && count == 0 {
		err = errors.New("it has no rows")
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	head := append([]byte(npyMagic), 1, 0, size-10, 0)
	axes := strconv.Itoa(count)
	for _, n := range shape {
		axes += ", " + strconv.Itoa(n)
	}
	head = fmt.Appendf(head, npyHeaderText, axes)
	for len(head) < size-1 {
		head = append(head, ' ')
	}
	if _, err = f.WriteAt(append(head, '\n'), 0); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil { // other users may share the folder
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
