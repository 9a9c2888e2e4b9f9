package table

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data/internal/parquetfile"
)

// mostCursors is the number of row groups that are read at a time.
const mostCursors = 16

// Pages keeps pages of bytes, such as encoded images, that were read last. Pages can only be read one after the other,
// so it goes on in a row group where it was. Methods may be called from several goroutines.
type Pages struct {
	Most int // rows that are kept, and less than a page more

	mu      sync.Mutex
	pages   []*bytesPage
	rows    int
	cursors []*pageCursor // used last at the end
	reads   int           // pages that were read, for tests
}

// bytesPage is a page of a column of bytes.
type bytesPage struct {
	of     *parquetfile.Chunk
	first  int // row in it
	values [][]byte
}

// pageCursor reads the pages of a row group.
type pageCursor struct {
	column *Column
	of     *parquetfile.Chunk
	next   int
	pages  parquet.Pages
}

// Get returns the bytes of a row of a row group, nil where it has none. They must not be changed.
func (c *Pages) Get(column *Column, group, row int) (b []byte, err error) {
	defer parquetfile.Recovered(&err)
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk := column.chunks[group]
	for i := len(c.pages) - 1; i >= 0; i-- {
		if p := c.pages[i]; p.of == chunk && row >= p.first && row < p.first+len(p.values) {
			c.pages = append(slices.Delete(c.pages, i, i+1), p)
			return p.values[row-p.first], nil
		}
	}
	x, err := c.cursor(column, chunk, row)
	if err != nil {
		return nil, err
	}
	if err := x.seek(row); err != nil {
		c.drop(x)
		return nil, err
	}
	for {
		p, err := x.read()
		if err != nil {
			c.drop(x)
			return nil, err
		}
		c.keep(p)
		if row < x.next {
			return p.values[row-p.first], nil
		}
	}
}

// cursor returns what reads a row group, at or before a row.
func (c *Pages) cursor(column *Column, chunk *parquetfile.Chunk, row int) (*pageCursor, error) {
	for _, x := range c.cursors {
		if x.of == chunk && x.next <= row {
			c.cursors = append(slices.DeleteFunc(c.cursors, func(y *pageCursor) bool { return x == y }), x)
			return x, nil
		}
		if x.of == chunk {
			c.drop(x)
			break
		}
	}
	if len(c.cursors) == mostCursors {
		c.drop(c.cursors[0])
	}
	pages, err := chunk.Pages()
	if err != nil {
		return nil, err
	}
	x := &pageCursor{column: column, of: chunk, pages: pages}
	c.cursors = append(c.cursors, x)
	return x, nil
}

// seek goes on to the page of a row, where the file says which that is.
func (x *pageCursor) seek(row int) error {
	index := x.of.Index()
	if index == nil {
		return nil
	}
	k := sort.Search(index.NumPages(), func(k int) bool { return index.FirstRowIndex(k) > int64(row) }) - 1
	if k < 0 || index.FirstRowIndex(k) <= int64(x.next) {
		return nil
	}
	x.next = int(index.FirstRowIndex(k))
	return x.pages.SeekToRow(int64(x.next))
}

// read reads the next page.
func (x *pageCursor) read() (*bytesPage, error) {
	page, err := x.pages.ReadPage()
	if err == io.EOF {
		return nil, errors.New("its row group has fewer images than rows: copy the file again")
	}
	if err != nil {
		return nil, parquetfile.Fault(fmt.Errorf("behind row %d of its row group: %w", x.next, err))
	}
	defer parquet.Release(page)
	p := &bytesPage{of: x.of, first: x.next}
	err = x.column.eachOf(page, func(values []parquet.Value) error {
		for _, v := range values {
			var b []byte
			if !v.IsNull() {
				b = slices.Clone(v.ByteArray())
			}
			p.values = append(p.values, b)
		}
		return nil
	})
	x.next += len(p.values)
	return p, err
}

// keep adds a page, and removes those that were used longest ago.
func (c *Pages) keep(p *bytesPage) {
	c.reads++
	c.pages = append(c.pages, p)
	c.rows += len(p.values)
	for len(c.pages) > 1 && c.rows-len(c.pages[0].values) >= c.Most {
		c.rows -= len(c.pages[0].values)
		c.pages = slices.Delete(c.pages, 0, 1)
	}
}

// drop ends the reading of a row group.
func (c *Pages) drop(x *pageCursor) {
	x.pages.Close()
	c.cursors = slices.DeleteFunc(c.cursors, func(y *pageCursor) bool { return x == y })
}

// Close ends all reading. The pages are read again when they are asked for.
func (c *Pages) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.cursors) > 0 {
		c.drop(c.cursors[0])
	}
	c.pages, c.rows = nil, 0
}
