package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sort"

	"github.com/parquet-go/parquet-go/format"
)

// guard gives the bytes of the pages of a column, each page once its values were looked at. Pages without values, which
// Arrow writes between others, are not among them: the library takes a page of version 2 to have levels.
type guard struct {
	c *Chunk
}

// ReadAt implements io.ReaderAt. It gives the bytes before a page that is damaged, and its error.
func (g guard) ReadAt(b []byte, off int64) (n int, err error) {
	pages := g.c.pages
	i := sort.Search(len(pages), func(i int) bool { return pages[i].given+pages[i].end-pages[i].at > off })
	for ; n < len(b); i++ {
		if i == len(pages) {
			return n, io.EOF
		}
		p := &pages[i]
		if !p.sound {
			if err := g.c.checkValues(p); err != nil {
				return n, pageError(p.at, err)
			}
			p.sound = true
		}
		from := p.at + off + int64(n) - p.given
		m, err := g.c.file.ReadAt(b[n:min(int64(len(b)), int64(n)+p.end-from)], from)
		n += m
		if from+int64(m) < p.end && n < len(b) {
			return n, err
		}
	}
	return n, nil
}

// checkValues looks at how many levels and values a page says that it holds, behind its header.
func (c *Chunk) checkValues(p *page) error {
	b := make([]byte, p.end-p.at)
	if _, err := io.ReadFull(io.NewSectionReader(c.file, p.at, int64(len(b))), b); err != nil {
		return err
	}
	h, n, err := pageHeader(bytes.NewReader(b), 0, int64(len(b)))
	if err != nil {
		return err
	}
	switch b = b[n:]; h.Type {
	case format.DataPage:
		return c.checkV1(b, h)
	case format.DataPageV2:
		return c.checkV2(b, h)
	}
	return c.checkDictionary(b, h)
}

// checkDictionary checks a page of values, each of which takes a byte at least.
func (c *Chunk) checkDictionary(b []byte, h *format.PageHeader) error {
	b, err := c.decompress(b, h, 0)
	if n := int(h.DictionaryPageHeader.V.NumValues); err == nil && n > len(b) {
		err = fmt.Errorf("it says that it has %d values in %d bytes", n, len(b))
	}
	return err
}

// checkV1 checks a page whose levels are compressed with its values, each behind the number of its bytes.
func (c *Chunk) checkV1(b []byte, h *format.PageHeader) error {
	v := &h.DataPageHeader.V
	b, err := c.decompress(b, h, 0)
	if err != nil {
		return err
	}
	for _, levels := range []struct {
		most     int
		encoding format.Encoding
	}{{c.leaf.MaxRepetitionLevel(), v.RepetitionLevelEncoding},
		{c.leaf.MaxDefinitionLevel(), v.DefinitionLevelEncoding}} {
		if levels.most == 0 {
			continue
		}
		var in []byte
		if in, b, err = prefixed(b); err != nil {
			return err
		}
		if levels.encoding != format.RLE { // the other one takes no more memory than there are bytes
			continue
		}
		if err := checkRuns(in, bits.Len(uint(levels.most)), int64(v.NumValues)); err != nil {
			return err
		}
	}
	return checkEncoded(b, v.Encoding, int64(v.NumValues))
}

// checkV2 checks a page whose levels lie before the bytes that are compressed.
func (c *Chunk) checkV2(b []byte, h *format.PageHeader) error {
	v, levelBytes := &h.DataPageHeaderV2.V, 0
	for _, levels := range []struct {
		most  int
		bytes int32
	}{{c.leaf.MaxRepetitionLevel(), v.RepetitionLevelsByteLength},
		{c.leaf.MaxDefinitionLevel(), v.DefinitionLevelsByteLength}} {
		if levels.bytes < 0 || int(levels.bytes) > len(b) {
			return errShort
		}
		if levels.most > 0 {
			if err := checkRuns(b[:levels.bytes], bits.Len(uint(levels.most)), int64(v.NumValues)); err != nil {
				return err
			}
		}
		b, levelBytes = b[levels.bytes:], levelBytes+int(levels.bytes)
	}
	if !v.IsCompressed.Valid || v.IsCompressed.V {
		var err error
		if b, err = c.decompress(b, h, levelBytes); err != nil {
			return err
		}
	}
	return checkEncoded(b, v.Encoding, int64(v.NumValues))
}

// decompress returns the bytes that a page holds behind those of its levels. They have to be as many as it says: so
// many the library takes memory for.
func (c *Chunk) decompress(b []byte, h *format.PageHeader, levels int) ([]byte, error) {
	codec := c.meta().Codec
	if codec == format.Uncompressed {
		return b, nil // which is not asked how many it holds
	}
	if codec == format.Snappy {
		if err := checkSnappy(b); err != nil {
			return nil, err
		}
	}
	out, err := inflate(codec, b, int64(h.UncompressedPageSize))
	if err == nil && int(h.UncompressedPageSize) > len(out)+levels {
		err = fmt.Errorf("it says that it holds %d bytes, and has %d", h.UncompressedPageSize, len(out)+levels)
	}
	return out, err
}

// prefixed splits bytes behind those of which the first four tell the number.
func prefixed(b []byte) (in, rest []byte, err error) {
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, nil, errShort
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n], b[n:], nil
}
