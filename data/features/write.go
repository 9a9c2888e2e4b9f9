package features

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/geoalign/geoalign/internal/files"
)

// npyHeaderText is the header of a file that is written; with spaces it has always one length.
const npyHeaderText = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"

// Write writes rows of one width as a .npy file of float32, which gets its name when it is whole. rows hands one after
// another to emit. The process does not end meanwhile, so that a signal finds what was begun removed.
func Write(path string, rows func(emit func([]float32) error) error) error {
	return WriteArray(path, nil, rows)
}

// WriteArray is Write of an array whose rows have a shape; nil: one axis.
func WriteArray(path string, shape []int, rows func(emit func([]float32) error) error) error {
	return files.Fill(path, func(f *os.File) error { return writeArray(f, shape, rows) })
}

// writeArray is WriteArray to a file.
func writeArray(f *os.File, shape []int, rows func(emit func([]float32) error) error) error {
	const size = 128
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(make([]byte, size)); err != nil {
		return err
	}
	count, width := 0, 1
	for _, n := range shape {
		width *= n
	}
	var b []byte
	err := rows(func(row []float32) error {
		if count == 0 && shape == nil {
			width, shape = len(row), []int{len(row)}
		}
		if len(row) != width || width == 0 {
			return fmt.Errorf("row %d has %d numbers, and row 0 has %d: all rows of a matrix have one width, above 0",
				count, len(row), width)
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
	_, err = f.WriteAt(append(head, '\n'), 0)
	return err
}
