package parquetfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// valuesPerByte is how many values a column may have for each byte of its file. Values that are all the same take next
// to no bytes, but they are not the only ones of a file of data.
const valuesPerByte = 4096

// headerBytes is how much is read of a page at first; its header is longer where it has statistics.
const headerBytes = 256

// page is where a page of a column lies in its file.
type page struct {
	at, end int64
	given   int64 // where the library finds it: pages without values are left out before it
	sound   bool  // its values were looked at
}

// check walks over the headers of the pages of a column in a row group, and over the index of its pages if it has one.
// The library takes what a header says: memory for bytes that are not there, or for values of which no page can hold
// so many.
func (c *Chunk) check() error {
	group := &c.file.Metadata().RowGroups[c.group]
	meta := c.meta()
	if meta.NumValues < 0 {
		return fmt.Errorf("it says that it has %d values", meta.NumValues)
	}
	if most := c.file.Size() * valuesPerByte; meta.NumValues > most {
		return unsupported{fmt.Errorf("it says that it has %d values, and of a file of %d bytes %d are read at most, so it is damaged or not supported: copy the file again, or write it anew without compression", meta.NumValues, c.file.Size(), most)}
	}
	if group.NumRows > meta.NumValues {
		return fmt.Errorf("it has %d values, and the row group %d rows", meta.NumValues, group.NumRows)
	}
	begin := meta.DataPageOffset
	if meta.DictionaryPageOffset != 0 {
		begin = meta.DictionaryPageOffset
	}
	end := begin + meta.TotalCompressedSize
	if begin < 0 || end < begin || end > c.file.Size() {
		return fmt.Errorf("it has %d bytes from byte %d on, of %d of the file", meta.TotalCompressedSize, begin,
			c.file.Size())
	}
	left, given := meta.NumValues, begin
	for at := begin; at < end; {
		header, n, err := pageHeader(c.file, at, end)
		if err == nil {
			err = checkPage(header, end-at-n, &left)
		}
		if err != nil {
			return pageError(at, err)
		}
		p := page{at: at, end: at + n + int64(header.CompressedPageSize), given: given}
		at = p.end
		if header.Type != format.DictionaryPage && valuesOf(header) == 0 {
			c.leftOut = append(c.leftOut, p)
			continue
		}
		c.pages = append(c.pages, p)
		given += p.end - p.at
	}
	return c.checkIndex()
}

func pageError(at int64, err error) error { return fmt.Errorf("its page at byte %d: %w", at, err) }

// pageHeader reads the header of a page, and tells how many bytes it has.
func pageHeader(r io.ReaderAt, at, end int64) (*format.PageHeader, int64, error) {
	for n := min(headerBytes, end-at); ; n = min(4*n, end-at) {
		b := make([]byte, n)
		if _, err := io.ReadFull(io.NewSectionReader(r, at, n), b); err != nil {
			return nil, 0, err
		}
		w := walker{rest: b}
		if err := w.structure(0); errors.Is(err, errShort) && n < end-at {
			continue
		} else if err != nil {
			return nil, 0, fmt.Errorf("its header is damaged: %w", err)
		}
		header := new(format.PageHeader)
		in := new(thrift.CompactProtocol).NewReaderFromBytes(b)
		if err := thrift.NewDecoder(in).Decode(header); err != nil {
			return nil, 0, fmt.Errorf("its header is damaged: %w", err)
		}
		return header, int64(in.BytesRead()), nil
	}
}

// valuesOf is how many values a page of them says that it has, with those that are null.
func valuesOf(h *format.PageHeader) int64 {
	switch h.Type {
	case format.DataPage:
		return int64(h.DataPageHeader.V.NumValues)
	case format.DataPageV2:
		return int64(h.DataPageHeaderV2.V.NumValues)
	}
	return 0
}

// checkPage checks a page of which bytes are left in its column, which has left more values.
func checkPage(h *format.PageHeader, bytes int64, left *int64) error {
	if n := int64(h.CompressedPageSize); n < 0 || n > bytes {
		return fmt.Errorf("it has %d bytes, and %d are left", n, bytes)
	}
	if h.Type == format.DictionaryPage {
		if e := h.DictionaryPageHeader.V.Encoding; e != format.Plain && e != plainDictionary {
			return unsupported{fmt.Errorf(
				"not supported: it is a dictionary encoded by %s: write the file anew with pyarrow", e)}
		}
	}
	if *left -= valuesOf(h); *left < 0 {
		return errors.New("it and those before it hold more values than the column has")
	}
	return nil
}

// snappyRatio is how many bytes Snappy can make of one: the best is a copy of 64, which takes three.
const snappyRatio = 22

// checkIndex walks over the index of pages, of which each has to begin where one does.
func (c *Chunk) checkIndex() error {
	x := &c.file.Metadata().RowGroups[c.group].Columns[c.leaf.Index()]
	at, n := x.OffsetIndexOffset, int64(x.OffsetIndexLength)
	if at == 0 {
		return nil
	}
	if at < 0 || n < 0 || at > c.file.Size()-n {
		return fmt.Errorf("its index of pages has %d bytes from byte %d on, of %d of the file", n, at, c.file.Size())
	}
	if err := check(c.file, at, n); err != nil {
		return fmt.Errorf("its index of pages is damaged: %w", err)
	}
	index, err := c.chunk().OffsetIndex()
	if err != nil {
		return fmt.Errorf("its index of pages is damaged: %w", err)
	}
	for k := range index.NumPages() {
		if !begins(c.pages, index.Offset(k)) && !begins(c.leftOut, index.Offset(k)) {
			return fmt.Errorf("its index says that a page begins at byte %d, where none does", index.Offset(k))
		}
	}
	return nil
}

// begins tells whether one of some pages begins at a byte.
func begins(pages []page, at int64) bool {
	_, found := slices.BinarySearchFunc(pages, at, func(p page, at int64) int { return cmp.Compare(p.at, at) })
	return found
}
