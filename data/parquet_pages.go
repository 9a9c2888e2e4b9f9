package data

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

// pageCache keeps pages of encoded images that were read last. Pages can only be read one after the other, so
// it goes on in a row group where it was. Methods may be called from several goroutines.
type pageCache struct {
	most int // rows that are kept, and less than a page more

	mu      sync.Mutex
	pages   []*imagePage
	rows    int
	cursors []*pageCursor // used last at the end
	reads   int           // pages that were read, for tests
}

// imagePage is a page of a column of images.
type imagePage struct {
	group, first int // row group, and row in it
	images       [][]byte
}

// pageCursor reads the pages of a row group.
type pageCursor struct {
	group, next int
	pages       parquet.Pages
}

// get returns the bytes of a row of a row group, nil where it has none. They must not be changed.
func (c *pageCache) get(group, row int, chunk *parquetfile.Chunk) (b []byte, err error) {
	defer parquetfile.Recovered(&err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.pages) - 1; i >= 0; i-- {
		if p := c.pages[i]; p.group == group && row >= p.first && row < p.first+len(p.images) {
			c.pages = append(slices.Delete(c.pages, i, i+1), p)
			return p.images[row-p.first], nil
		}
	}
	x, err := c.cursor(group, row, chunk)
	if err != nil {
		return nil, err
	}
	if err := x.seek(row, chunk); err != nil {
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
			return p.images[row-p.first], nil
		}
	}
}

// cursor returns what reads a row group, at or before a row.
func (c *pageCache) cursor(group, row int, chunk *parquetfile.Chunk) (*pageCursor, error) {
	for _, x := range c.cursors {
		if x.group == group && x.next <= row {
			c.cursors = append(slices.DeleteFunc(c.cursors, func(y *pageCursor) bool { return x == y }), x)
			return x, nil
		}
		if x.group == group {
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
	x := &pageCursor{group: group, pages: pages}
	c.cursors = append(c.cursors, x)
	return x, nil
}

// seek goes on to the page of a row, where the file says which that is.
func (x *pageCursor) seek(row int, chunk *parquetfile.Chunk) error {
	index := chunk.Index()
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
func (x *pageCursor) read() (*imagePage, error) {
	page, err := x.pages.ReadPage()
	if err == io.EOF {
		return nil, errors.New("its row group has fewer images than rows: copy the file again")
	}
	if err != nil {
		return nil, parquetfile.Fault(fmt.Errorf("behind row %d of its row group: %w", x.next, err))
	}
	defer parquet.Release(page)
	p := &imagePage{group: x.group, first: x.next}
	err = eachValue(page, func(values []parquet.Value) error {
		for _, v := range values {
			var b []byte
			if !v.IsNull() {
				b = slices.Clone(v.ByteArray())
			}
			p.images = append(p.images, b)
		}
		return nil
	})
	x.next += len(p.images)
	return p, err
}

// keep adds a page, and removes those that were used longest ago.
func (c *pageCache) keep(p *imagePage) {
	c.reads++
	c.pages = append(c.pages, p)
	c.rows += len(p.images)
	for len(c.pages) > 1 && c.rows-len(c.pages[0].images) >= c.most {
		c.rows -= len(c.pages[0].images)
		c.pages = slices.Delete(c.pages, 0, 1)
	}
}

// drop ends the reading of a row group.
func (c *pageCache) drop(x *pageCursor) {
	x.pages.Close()
	c.cursors = slices.DeleteFunc(c.cursors, func(y *pageCursor) bool { return x == y })
}

func (c *pageCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.cursors) > 0 {
		c.drop(c.cursors[0])
	}
	c.pages, c.rows = nil, 0
}
