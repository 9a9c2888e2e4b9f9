package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestLongPages: a number of two thousand million, wherever it is said in the header of a page or at the begin of what it
// holds, takes no memory.
func TestLongPages(t *testing.T) {
	long := binary.AppendUvarint(nil, math.MaxUint32-1) // MaxInt32 in zigzag
	refused := 0
	list := files(t)
	for version := 1; version <= 2; version++ {
		list[fmt.Sprint("version ", version)], _ = encoded(t, version, "none")
	}
	for name, whole := range list {
		f, err := open(whole)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.RowGroups() {
			for _, leaf := range leaves(f.Root()) {
				c := Chunk{file: f, leaf: leaf, group: g}
				if _, err := c.Pages(); err != nil {
					t.Fatal(err)
				}
				for _, p := range c.pages[:min(len(c.pages), 2)] {
					h, n, err := pageHeader(f, p.at, p.end)
					if err != nil {
						t.Fatal(err)
					}
					if h.CRC != 0 { // which would find every damage
						sum := binary.AppendVarint(nil, int64(h.CRC))
						zero := append(bytes.Repeat([]byte{0x80}, len(sum)-1), 0)
						copy(whole[p.at:], bytes.Replace(whole[p.at:p.at+n], sum, zero, 1))
					}
					for at := p.at; at+int64(len(long)) <= min(p.end, p.at+n+30); at++ {
						b := slices.Clone(whole)
						copy(b[at:], long)
						n, err := take(t, b, g, leaf.Index())
						if n > 4<<20 {
							t.Fatalf("%s: %d MB for a number at %d (%v)", name, n>>20, at, err)
						}
						if err != nil && strings.Contains(err.Error(), "its page at byte ") {
							refused++
						}
					}
				}
			}
		}
	}
	if refused < 1000 {
		t.Errorf("%d pages were refused", refused)
	}
}

// take reads a column of a row group, and tells how much memory that takes.
func take(t *testing.T, b []byte, group, column int) (n uint64, err error) {
	t.Helper()
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	before := allocated()
	defer func() { n = allocated() - before }()
	defer Recovered(&err)
	_, err = chunkTexts(&Chunk{file: f, leaf: leaves(f.Root())[column], group: group}, nil)
	return 0, err
}

// TestSmallPages: what is compressed as well as a codec can is read, in pages of both versions.
func TestSmallPages(t *testing.T) {
	type row struct {
		Text string `parquet:"text"`
	}
	same := strings.Repeat("a", 1<<22)
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd} {
		for version := 1; version <= 2; version++ {
			var b bytes.Buffer
			w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec), parquet.DataPageVersion(version))
			if _, err := w.Write([]row{{same}, {""}, {"b"}}); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := open(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if list, err := texts(f); err != nil || !slices.Equal(list, []string{same, "", "b"}) {
				t.Errorf("%v, version %d: %d texts, %v", codec, version, len(list), err)
			}
		}
	}
}

// TestColumnsRefused: what is said of a column in the footer and cannot be, in words.
func TestColumnsRefused(t *testing.T) {
	whole := files(t)["../../testdata/parquet/index.parquet"]
	size := len(whole)
	for _, c := range []struct {
		want  string
		wrong func(g *format.RowGroup, x *format.ColumnChunk)
	}{
		{fmt.Sprintf("says that it has 9223372036854775807 values, and of a file of %d bytes %d are read at most", size, size*valuesPerByte), func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.NumValues = math.MaxInt64 }},
		{"says that it has -1 values", func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.NumValues = -1 }},
		{"values, and the row group 9223372036854775807 rows", func(g *format.RowGroup, x *format.ColumnChunk) { g.NumRows = math.MaxInt64 }},
		{"hold more values than the column has", func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.NumValues--; g.NumRows-- }},
		{fmt.Sprintf("it has 9223372036854775807 bytes from byte 4 on, of %d of the file", size), func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.TotalCompressedSize = math.MaxInt64 }},
		{"it has -1 bytes from byte 4 on", func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.TotalCompressedSize = -1 }},
		{"from byte -4 on", func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.DictionaryPageOffset = -4 }},
		{"its page at byte 4: its header is damaged: it ends early", func(g *format.RowGroup, x *format.ColumnChunk) { x.MetaData.TotalCompressedSize = 3 }},
		{"where none does", func(g *format.RowGroup, x *format.ColumnChunk) {
			x.OffsetIndexOffset, x.OffsetIndexLength = g.Columns[1].OffsetIndexOffset, g.Columns[1].OffsetIndexLength
		}},
	} {
		f, err := open(whole)
		if err != nil {
			t.Fatal(err)
		}
		g := &f.Metadata().RowGroups[0]
		c.wrong(g, &g.Columns[0])
		x := Chunk{file: f, leaf: leaves(f.Root())[0]}
		if _, err := x.Pages(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ": copy the file again") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestPagesRefused: what is said of a page in its header and cannot be, in words.
func TestPagesRefused(t *testing.T) {
	v2 := format.DataPageHeaderV2{NumValues: 5, RepetitionLevelsByteLength: 2, DefinitionLevelsByteLength: 1}
	page := func(kind format.PageType, compressed, uncompressed int32) format.PageHeader {
		return format.PageHeader{
			Type: kind, CompressedPageSize: compressed, UncompressedPageSize: uncompressed,
			DataPageHeader:       thrift.Null[format.DataPageHeader]{V: format.DataPageHeader{NumValues: 5}, Valid: kind == format.DataPage},
			DictionaryPageHeader: thrift.Null[format.DictionaryPageHeader]{V: format.DictionaryPageHeader{NumValues: 5}, Valid: kind == format.DictionaryPage},
			DataPageHeaderV2:     thrift.Null[format.DataPageHeaderV2]{V: v2, Valid: kind == format.DataPageV2},
		}
	}
	deltas := page(format.DictionaryPage, 100, 100)
	deltas.DictionaryPageHeader.V.Encoding = format.DeltaByteArray
	for _, c := range []struct {
		h    format.PageHeader
		left int64
		want string
	}{
		{page(format.DataPage, 100, 2200), 5, ""},
		{page(format.DataPage, 101, 100), 5, "it has 101 bytes, and 100 are left"},
		{page(format.DataPage, -1, 100), 5, "it has -1 bytes"},
		{page(format.DataPage, 100, 100), 4, "it and those before it hold more values than the column has"},
		{page(format.DataPageV2, 100, 100), 4, "it and those before it hold more values than the column has"},
		{page(format.DictionaryPage, 100, 5), 0, ""},
		{deltas, 0, "not supported: it is a dictionary encoded by DELTA_BYTE_ARRAY"},
	} {
		if err := checkPage(&c.h, 100, &c.left); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.h, err, c.want)
		}
	}
	length := func(n uint64, bytes int) []byte {
		b := binary.AppendUvarint(nil, n)
		return append(b, make([]byte, bytes-len(b))...)
	}
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{length(220, 10), ""},
		{length(221, 10), "its 10 compressed bytes say that they hold 221"},
		{length(math.MaxUint64, 10), "say that they hold"},
		{nil, ""},
		{[]byte{0x80}, "its 1 compressed bytes"},
	} {
		if err := checkSnappy(c.b); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, want %q", c.b, err, c.want)
		}
	}
}

// TestLongHeader: a header that is longer than what is read at first.
func TestLongHeader(t *testing.T) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{
		Type: format.DataPage, CompressedPageSize: 7, UncompressedPageSize: 7,
		DataPageHeader: thrift.Null[format.DataPageHeader]{Valid: true, V: format.DataPageHeader{NumValues: 3, Statistics: format.Statistics{MaxValue: make([]byte, 5000)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range []int{0, 10, 100000} {
		whole := append(slices.Clone(b), make([]byte, behind)...)
		h, n, err := pageHeader(bytes.NewReader(whole), 0, int64(len(whole)))
		if err != nil || n != int64(len(b)) || h.CompressedPageSize != 7 || h.DataPageHeader.V.NumValues != 3 {
			t.Errorf("%d bytes of %d, %v", n, len(b), err)
		}
	}
	if _, _, err := pageHeader(bytes.NewReader(b), 0, int64(len(b)-1)); err == nil {
		t.Error("a header that is cut")
	}
}

// TestEmptyPages: pages without values, at which the library panics, are left out, and with them an index that counts them. What is behind them is read.
func TestEmptyPages(t *testing.T) {
	b := filetest.Read(t, "../../features/testdata/writers/arrow_empty_pages.parquet")
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := Chunks(f, leaves(f.Root())[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(values(t, chunks[0])); n != 45*6 {
		t.Errorf("%d values", n)
	}
	if len(chunks[0].leftOut) == 0 || chunks[0].Index() != nil {
		t.Errorf("%d pages are left out, index %v", len(chunks[0].leftOut), chunks[0].Index())
	}
}
