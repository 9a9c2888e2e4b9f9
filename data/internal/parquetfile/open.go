// Package parquetfile opens .parquet files whose footers are sound. The library takes memory for what a footer says
// is there before it finds out whether it is, so that a few wrong bytes in a small file would take all memory and end
// the program.
package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

const (
	magic        = "PAR1"
	trailerBytes = 4 + len(magic) // length of the footer, and the magic
)

// Open opens a file of size bytes, without its indices of pages and bloom filters. Call CheckCodec
// before a column is read, and CheckPages before its index of pages is used. The error says what to do.
func Open(r io.ReaderAt, size int64, options ...parquet.FileOption) (*parquet.File, error) {
	err := checkFooter(r, size)
	var f *parquet.File
	if err == nil {
		f, err = parquet.OpenFile(r, size, append(options, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))...)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no .parquet file that can be read: %w: copy it again", err)
	}
	return f, nil
}

// Recovered makes an error of a panic of the library at a damaged file; it is to be deferred.
func Recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("it cannot be read (%v): copy it again", v)
	}
}

// checkFooter walks over the footer. What the library has words of its own for, such as another magic, is left to it.
func checkFooter(r io.ReaderAt, size int64) error {
	if size < int64(len(magic)+trailerBytes) {
		return fmt.Errorf("it has %d bytes", size)
	}
	var trailer [trailerBytes]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(trailerBytes), int64(trailerBytes)), trailer[:]); err != nil {
		return err
	}
	if string(trailer[4:]) != magic {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(trailer[:]))
	if most := size - int64(len(magic)+trailerBytes); n > most {
		return fmt.Errorf("its footer has %d bytes and the file room for %d", n, most)
	}
	if err := check(r, size-int64(trailerBytes)-n, n); err != nil {
		return fmt.Errorf("its footer is damaged: %w", err)
	}
	return nil
}

// CheckPages walks over the index of pages of a column in a row group, if it has one. A file whose index is damaged
// must not be asked for it.
func CheckPages(f *parquet.File, group, column int) error {
	c := &f.Metadata().RowGroups[group].Columns[column]
	at, n := c.OffsetIndexOffset, int64(c.OffsetIndexLength)
	if at == 0 {
		return nil
	}
	if at < 0 || n < 0 || at > f.Size()-n {
		return fmt.Errorf("the index of pages of column %d in row group %d has %d bytes from byte %d on, of %d of the file: copy the file again", column, group, n, at, f.Size())
	}
	if err := check(f, at, n); err != nil {
		return fmt.Errorf("the index of pages of column %d in row group %d is damaged: %w: copy the file again", column, group, err)
	}
	return nil
}

// check walks over the structure that begins at one of n bytes.
func check(r io.ReaderAt, at, n int64) error {
	b := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, at, n), b); err != nil {
		return err
	}
	w := walker{rest: b}
	return w.structure(0)
}
