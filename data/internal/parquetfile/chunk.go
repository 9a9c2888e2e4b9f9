package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Chunk is a column in a row group. Its methods must not be called from several goroutines.
type Chunk struct {
	file  *parquet.File
	leaf  *parquet.Column
	group int
	sound bool // its headers and its index were looked at

	pages   []page
	leftOut []page // without values
}

// Chunks returns the parts of a column, one for each row group. It refuses a column that is compressed in a way that
// the library does not read rightly.
func Chunks(f *parquet.File, leaf *parquet.Column) ([]*Chunk, error) {
	if err := checkCodec(f, leaf); err != nil {
		return nil, err
	}
	list := make([]*Chunk, len(f.RowGroups()))
	for g := range list {
		list[g] = &Chunk{file: f, leaf: leaf, group: g}
	}
	return list, nil
}

// Pages returns a reader of the pages, none of which takes more memory than its values can. The caller closes it.
func (c *Chunk) Pages() (parquet.Pages, error) {
	if !c.sound {
		c.pages, c.leftOut = nil, nil
		if err := c.check(); err != nil {
			return nil, Fault(fmt.Errorf("column %q in row group %d: %w", c.leaf.Path()[0], c.group, err))
		}
		c.sound = true
	}
	return c.chunk().PagesFrom(guard{c}), nil
}

// Index returns where pages begin, nil if the file does not say that, or counts pages that Pages leaves out. To be
// called after Pages.
func (c *Chunk) Index() parquet.OffsetIndex {
	if len(c.leftOut) > 0 {
		return nil
	}
	index, err := c.chunk().OffsetIndex()
	if err != nil { // there is none
		return nil
	}
	return index
}

func (c *Chunk) chunk() *parquet.FileColumnChunk {
	return c.file.RowGroups()[c.group].ColumnChunks()[c.leaf.Index()].(*parquet.FileColumnChunk)
}

func (c *Chunk) meta() *format.ColumnMetaData {
	return &c.file.Metadata().RowGroups[c.group].Columns[c.leaf.Index()].MetaData
}
