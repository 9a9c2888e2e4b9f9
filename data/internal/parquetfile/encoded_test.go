package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// kinds is a row with values in every encoding that the library writes.
type kinds struct {
	Plain    string    `parquet:"plain"`
	Word     string    `parquet:"word,dict"`
	Maybe    *string   `parquet:"maybe,dict,optional"`
	Lengths  string    `parquet:"lengths,delta"`
	Prefixes string    `parquet:"prefixes"`
	Number   int32     `parquet:"number,delta"`
	Count    int64     `parquet:"count,delta"`
	Truth    bool      `parquet:"truth"`
	Floats   []float32 `parquet:"floats,list"`
	Apart    float64   `parquet:"apart,split"`
	Bytes    [3]byte   `parquet:"bytes,dict"`
}

// encoded is a file of 400 rows of all kinds, in pages of a version.
func encoded(t *testing.T, version int, codec string) ([]byte, []kinds) {
	t.Helper()
	var b bytes.Buffer
	node := parquet.Group{}
	for _, x := range parquet.SchemaOf(kinds{}).Fields() {
		node[x.Name()] = x
		if x.Name() == "prefixes" {
			node[x.Name()] = parquet.Encoded(x, &parquet.DeltaByteArray)
		}
		if x.Name() == "truth" {
			node[x.Name()] = parquet.Encoded(x, &parquet.RLE)
		}
	}
	schema := parquet.NewSchema("kinds", node)
	options := []parquet.WriterOption{schema, parquet.DataPageVersion(version), parquet.PageBufferSize(800)}
	if codec == "snappy" {
		options = append(options, parquet.Compression(&parquet.Snappy))
	}
	w := parquet.NewGenericWriter[kinds](&b, options...)
	var rows []kinds
	for i := range 400 {
		x := kinds{
			Plain: fmt.Sprint("text ", i), Word: []string{"a", "bc", "d"}[i/40%3], Lengths: strings.Repeat("x", i%7), Prefixes: fmt.Sprintf("/a/long/path/of/%04d.jpg", i),
			Number: int32(i * i), Count: int64(i) << 33, Truth: i%80 < 60, Apart: float64(i) / 7, Bytes: [3]byte{byte(i % 3), 1, 2},
		}
		if i%5 > 0 {
			x.Maybe = &x.Word
		}
		for k := range i % 4 {
			x.Floats = append(x.Floats, float32(k))
		}
		rows = append(rows, x)
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), rows
}

// TestEncodings: values in every encoding pass, and are those that the library reads of the file by itself.
func TestEncodings(t *testing.T) {
	seen := map[format.Encoding]bool{}
	for version := 1; version <= 2; version++ {
		for _, codec := range []string{"none", "snappy"} {
			b, rows := encoded(t, version, codec)
			got, err := parquet.Read[kinds](bytes.NewReader(b), int64(len(b)))
			if err != nil || len(got) != len(rows) || !reflect.DeepEqual(got[398], rows[398]) {
				t.Fatalf("%d rows, %v", len(got), err)
			}
			f, err := open(b)
			if err != nil {
				t.Fatal(err)
			}
			for i, leaf := range leaves(f.Root()) {
				chunks, err := Chunks(f, leaf)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(values(t, chunks[0])); int64(n) != chunks[0].meta().NumValues {
					t.Errorf("%v: %d values of %d", leaf.Path(), n, chunks[0].meta().NumValues)
				}
				alone := f.RowGroups()[0].ColumnChunks()[i].Pages()
				if want := pageValues(t, alone); !reflect.DeepEqual(values(t, chunks[0]), want) {
					t.Errorf("%v: other values than the library's", leaf.Path())
				}
				for _, p := range chunks[0].pages {
					if !p.sound {
						t.Errorf("%v: a page that was not looked at", leaf.Path())
					}
					h, _, err := pageHeader(f, p.at, p.end)
					if err != nil {
						t.Fatal(err)
					}
					switch h.Type {
					case format.DataPage:
						seen[h.DataPageHeader.V.Encoding] = true
					case format.DataPageV2:
						seen[h.DataPageHeaderV2.V.Encoding] = true
					}
				}
			}
		}
	}
	for _, e := range []format.Encoding{format.Plain, format.RLEDictionary, format.RLE, format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray, format.ByteStreamSplit} {
		if !seen[e] {
			t.Errorf("no page is encoded by %s", e)
		}
	}
}

func values(t *testing.T, c *Chunk) []string {
	t.Helper()
	pages, err := c.Pages()
	if err != nil {
		t.Fatal(err)
	}
	return pageValues(t, pages)
}

func pageValues(t *testing.T, pages parquet.Pages) []string {
	t.Helper()
	list, err := pageTexts(pages, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRuns: no more values than a page has, in one run or several.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		b     []byte
		width int
		n     int64
		want  string
	}{
		{nil, 1, 0, ""},
		{[]byte{20, 1}, 1, 10, ""},
		{[]byte{20, 1, 14, 0}, 1, 10, ""},
		{[]byte{20, 1, 16, 0}, 1, 10, "it says that it holds 18 values, and has 10"},
		{[]byte{3, 0xaa}, 1, 1, ""},
		{[]byte{5, 0xaa, 0xaa}, 1, 9, ""},
		{[]byte{5, 0xaa, 0xaa}, 1, 8, ""}, // filled up
		{append([]byte{65}, make([]byte, 32)...), 1, 8, ""},
		{append([]byte{65}, make([]byte, 31)...), 1, 8, "it ends early"},
		{[]byte{65}, 0, 8, "it says that it holds 32 values, and has 8"},
		{binary.AppendUvarint(nil, math.MaxUint64), 1, 10, "it ends early"},
		{[]byte{5, 0xaa}, 1, 9, "it ends early"},
		{[]byte{20}, 1, 10, "it ends early"},
		{[]byte{20}, 0, 10, ""},
		{[]byte{20, 1, 1}, 9, 10, ""},
		{[]byte{0x80}, 1, 10, "it ends early"},
		{binary.AppendUvarint(nil, math.MaxUint64), 0, 10, "it says that it holds 9223372036854775807 values"},
		{binary.AppendUvarint(nil, math.MaxUint64-1), 0, 10, "it says that it holds 9223372036854775807 values"},
	} {
		if err := checkRuns(c.b, c.width, c.n); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.b, err, c.want)
		}
	}
}

// TestTruth: runs of truth values that the library reads rightly pass, and others are not supported.
func TestTruth(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want bool
	}{
		{nil, true}, {[]byte{16, 0}, true}, {[]byte{16, 0xff, 32, 0}, true}, {[]byte{3, 0xaa, 16, 0}, true}, {[]byte{2, 1}, true},
		{[]byte{16, 1}, false}, {[]byte{3, 0xaa, 16, 1}, false}, {[]byte{26, 0, 16, 0}, false}, {[]byte{26, 0}, true}, {[]byte{26, 0xff, 3, 0xaa}, false},
	} {
		err := checkTruth(c.b)
		if _, is := errors.AsType[unsupported](err); is == c.want || (err == nil) != c.want {
			t.Errorf("%v: %v", c.b, err)
		}
		got, _ := parquet.RLE.DecodeBoolean(nil, append(binary.LittleEndian.AppendUint32(nil, uint32(len(c.b))), c.b...))
		if c.want && len(c.b) > 0 && c.b[0] == 16 && (len(got) == 0 || got[0] != c.b[1]) {
			t.Errorf("%v is read as %v", c.b, got)
		}
	}
	if got, _ := parquet.RLE.DecodeBoolean(nil, []byte{2, 0, 0, 0, 16, 1}); len(got) != 1 || got[0] != 1 {
		t.Errorf("the library reads eight times true as %v: what checkTruth refuses may be read now", got)
	}
}

// TestDeltas: as many differences as a page has, and what is behind them.
func TestDeltas(t *testing.T) {
	for n := range 300 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i * i * (1 - 2*(i/32%2)))
		}
		b, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, list)
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := checkDeltas(append(b, "rest"...), int64(n)); err != nil || string(rest) != "rest" {
			t.Errorf("%d: %q, %v", n, rest, err)
		}
		if _, err := checkDeltas(b, int64(n)-1); n > 0 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it says that it holds %d values, and has %d", n, n-1))) {
			t.Errorf("%d: %v", n, err)
		}
	}
	for b, want := range map[string]string{
		"":                             "it ends early",
		"\x80\x01\x04\x05":             "it ends early",
		"\x80\x01\x00\x05\x00":         "it says that 128 differences are in 0 parts",
		"\x80\x01\x80\x02\x05\x00\x00": "it says that 128 differences are in 256 parts",
		"\x80\x80\x80\x01\x04\x05\x00": "it says that 2097152 differences are in 4 parts",
		"\x80\x01\x04\x05\x00\x00\x01": "it ends early",
	} {
		if _, err := checkDeltas([]byte(b), 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, want %q", b, err, want)
		}
	}
}

// TestPagesHold: a page that says more bytes or values than it has once it is decompressed is refused, and one that says as many is not.
func TestPagesHold(t *testing.T) {
	for version := 1; version <= 2; version++ {
		b, _ := encoded(t, version, "snappy")
		f, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		c := Chunk{file: f, leaf: f.Root().Column("maybe")}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		for i, check := range []func([]byte, *format.PageHeader) error{c.checkDictionary, []func([]byte, *format.PageHeader) error{c.checkV1, c.checkV2}[version-1]} {
			p := c.pages[i]
			h, n, err := pageHeader(f, p.at, p.end)
			if err != nil {
				t.Fatal(err)
			}
			try := func(what, want string) {
				if err := check(b[p.at+n:p.end], h); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("version %d, page %d, %s: %v, want %q", version, i, what, err, want)
				}
			}
			try("as it is", "")
			h.UncompressedPageSize++
			try("a byte more", fmt.Sprintf("it says that it holds %d bytes, and has %d", h.UncompressedPageSize, h.UncompressedPageSize-1))
			h.UncompressedPageSize--
			if i == 0 {
				h.DictionaryPageHeader.V.NumValues = h.UncompressedPageSize + 1
				try("more values than bytes", fmt.Sprintf("it says that it has %d values in %d bytes", h.UncompressedPageSize+1, h.UncompressedPageSize))
			}
		}
	}
}

// TestDamagedPage: what is before a damaged page is read, and where that page begins is told.
func TestDamagedPage(t *testing.T) {
	b, rows := encoded(t, 2, "snappy")
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	leaf := f.Root().Column("word")
	c := Chunk{file: f, leaf: leaf}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	if len(c.pages) < 3 {
		t.Fatalf("%d pages", len(c.pages))
	}
	last := c.pages[len(c.pages)-1]
	_, n, err := pageHeader(f, last.at, last.end)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[last.at+n:], "\xff\xff\xff\xff\x0f")
	pages, err := (&Chunk{file: f, leaf: leaf}).Pages()
	if err != nil {
		t.Fatal(err)
	}
	list, err := pageTexts(pages, nil)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("its page at byte %d: its ", last.at)) {
		t.Error(err)
	}
	if len(list) == 0 || len(list) == len(rows) || list[0] != rows[0].Word {
		t.Errorf("%d values are read", len(list))
	}
}
