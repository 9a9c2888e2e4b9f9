// Package parquetfile opens .parquet files whose footers are sound, and reads columns whose pages are. The library
// takes memory for what a footer or the header of a page says is there before it finds out whether it is, so that a few
// wrong bytes in a small file would take all memory and end the program.
package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

const (
	magic        = "PAR1"
	encrypted    = "PARE"         // magic of a file whose footer is encrypted
	trailerBytes = 4 + len(magic) // length of the footer, and the magic
)

// Open opens a file of size bytes, without its indices of pages and bloom filters. Its columns are to be read by
// Chunks. The error says what to do.
func Open(r io.ReaderAt, size int64, options ...parquet.FileOption) (*parquet.File, error) {
	err := checkFooter(r, size)
	var f *parquet.File
	if err == nil {
		f, err = parquet.OpenFile(r, size,
			append(options, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))...)
	}
	if _, is := errors.AsType[unsupported](err); is {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a .parquet file that can be read: %w: copy it again", err)
	}
	return f, nil
}

// Recovered makes an error of a panic of the library at a damaged file; it is to be deferred.
func Recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("it cannot be read (%v): it is damaged, or written in a way that is not supported: copy it again, or write it anew with pyarrow", v)
	}
}

// checkFooter walks over the footer. What the library has words of its own for, such as another magic, is left to it.
func checkFooter(r io.ReaderAt, size int64) error {
	if size < int64(len(magic)+trailerBytes) {
		return fmt.Errorf("it has %d bytes", size)
	}
	var trailer [trailerBytes]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(trailerBytes), int64(trailerBytes)),
		trailer[:]); err != nil {
		return err
	}
	is := string(trailer[4:])
	if is != magic && is != encrypted {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(trailer[:]))
	if most := size - int64(len(magic)+trailerBytes); n > most {
		return fmt.Errorf("its footer has %d bytes and the file room for %d", n, most)
	}
	if is == encrypted {
		return unsupported{errors.New("it is not supported: its footer is encrypted: write it anew without encryption")}
	}
	if err := check(r, size-int64(trailerBytes)-n, n); err != nil {
		return fmt.Errorf("its footer is damaged: %w", err)
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
