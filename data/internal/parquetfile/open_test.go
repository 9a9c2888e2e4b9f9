package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/parquet-go/parquet-go"
)

// files are .parquet files of Arrow: of images, and of features.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for _, pattern := range []string{"../../testdata/parquet/*.parquet", "../../features/testdata/*.parquet"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			b := filetest.Read(t, name)
			list[name] = b
		}
	}
	return list
}

func open(b []byte) (f *parquet.File, err error) {
	defer Recovered(&err)
	return Open(bytes.NewReader(b), int64(len(b)))
}

// leaves are the columns that have values.
func leaves(c *parquet.Column) (list []*parquet.Column) {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	for _, x := range c.Columns() {
		list = append(list, leaves(x)...)
	}
	return list
}

// footer returns where the footer of a file begins and ends.
func footer(b []byte) (begin, end int) {
	end = len(b) - trailerBytes
	return end - int(binary.LittleEndian.Uint32(b[end:])), end
}

// TestOpen: whole files are opened, their pages are sound, and the walk passes the whole footer. The pages of a column
// lie one behind the other and hold its values, as its metadata say.
func TestOpen(t *testing.T) {
	indices := 0
	for name, b := range files(t) {
		f, err := open(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for g := range f.RowGroups() {
			for c, leaf := range leaves(f.Root()) {
				x, chunk := Chunk{file: f, leaf: leaf, group: g}, &f.Metadata().RowGroups[g].Columns[c]
				if err := x.check(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if chunk.OffsetIndexOffset > 0 {
					indices++
				}
			}
		}
		begin, end := footer(b)
		w := walker{rest: b[begin:end]}
		if err := w.structure(0); err != nil || len(w.rest) != 0 {
			t.Errorf("%s: %d bytes are left of the footer: %v", name, len(w.rest), err)
		}
	}
	if indices == 0 {
		t.Error("no file has an index of pages")
	}
}

// TestLongLists: a list of two thousand million structures, wherever it is said in a footer or an index of pages,
// takes no memory.
func TestLongLists(t *testing.T) {
	long := binary.AppendUvarint([]byte{15<<4 | typeStruct}, math.MaxInt32)
	refused := 0
	for name, whole := range files(t) {
		begin, end := footer(whole)
		if f, err := open(whole); err != nil {
			t.Fatal(err)
		} else if at := f.Metadata().RowGroups[0].Columns[0].OffsetIndexOffset; at > 0 {
			begin = int(at)
		}
		for at := begin; at+len(long) <= end; at++ {
			b := slices.Clone(whole)
			copy(b[at:], long)
			before := allocated()
			f, err := open(b)
			for g := range groups(f) {
				for _, leaf := range leaves(f.Root()) {
					func() {
						defer Recovered(&err)
						x := Chunk{file: f, leaf: leaf, group: g}
						if err2 := x.checkIndex(); err2 != nil {
							err = err2
						}
					}()
				}
			}
			if n := allocated() - before; n > 16<<20 {
				t.Fatalf("%s: %d MB for a list at %d", name, n>>20, at)
			}
			if err != nil && strings.Contains(err.Error(), "a list of 2147483647 values") {
				refused++
			}
		}
	}
	if refused < 10 {
		t.Errorf("%d lists were refused for their length", refused)
	}
}

func groups(f *parquet.File) []parquet.RowGroup {
	if f == nil {
		return nil
	}
	return f.RowGroups()
}

// allocated is the number of bytes that were ever taken.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestRefused: what a file is not, in words.
func TestRefused(t *testing.T) {
	b := files(t)["../../testdata/parquet/index.parquet"]
	begin, end := footer(b)
	changed := func(f func(b []byte)) []byte {
		b := slices.Clone(b)
		f(b)
		return b
	}
	deep := func(n int) []byte { // lists in each other
		text := append(bytes.Repeat([]byte{1<<4 | typeList}, n), 0)
		text = append([]byte(magic+"\x19"), text...)
		return append(binary.LittleEndian.AppendUint32(text, uint32(len(text)-len(magic))), magic...)
	}
	for _, c := range []struct {
		what, want string
		b          []byte
	}{
		{"nothing", "it has 0 bytes", nil},
		{"no file of this kind", `invalid magic header`, []byte("this is not a table, and long enough to be one")},
		{"a long footer", fmt.Sprintf("its footer has 4294967295 bytes and the file room for %d", len(b)-12), changed(func(b []byte) { copy(b[end:], "\xff\xff\xff\xff") })},
		{"a long encrypted footer", fmt.Sprintf("its footer has 4294967295 bytes and the file room for %d", len(b)-12), changed(func(b []byte) { copy(b, encrypted); copy(b[end:], "\xff\xff\xff\xff"+encrypted) })},
		{"no footer", "its footer is damaged: it ends early", changed(func(b []byte) { copy(b[end:], "\x00\x00\x00\x00") })},
		{"an unknown type", "its footer is damaged: it has a value of the type 14, which is none", changed(func(b []byte) { b[begin] = 0x1e })},
		{"lists in lists", "its footer is damaged: it is deeper than 64", deep(1000)},
		{"a cut file", "it is not a .parquet file", b[:len(b)-3]},
	} {
		_, err := open(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "it is not a .parquet file that can be read: ") || !strings.HasSuffix(err.Error(), ": copy it again") {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	if _, err := open(changed(func(b []byte) { copy(b, encrypted); copy(b[end+4:], encrypted) })); err == nil || err.Error() != "it is not supported: its footer is encrypted: write it anew without encryption" {
		t.Errorf("an encrypted footer: %v", err)
	}
	for _, c := range []struct {
		at   int64
		n    int32
		want string
	}{
		{int64(len(b)), 1, fmt.Sprintf("its index of pages has 1 bytes from byte %d on, of %d of the file", len(b), len(b))},
		{4, math.MaxInt32, "has 2147483647 bytes from byte 4 on"},
		{4, -1, "has -1 bytes"},
		{-4, 1, "from byte -4 on"},
		{math.MaxInt64, 1, "has 1 bytes from byte 9223372036854775807 on"},
		{4, 0, "its index of pages is damaged: it ends early"},
	} {
		f, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		x := &f.Metadata().RowGroups[0].Columns[1]
		x.OffsetIndexOffset, x.OffsetIndexLength = c.at, c.n
		chunk := Chunk{file: f, leaf: leaves(f.Root())[1]}
		if _, err := chunk.Pages(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes from %d on: %v, want %q", c.n, c.at, err, c.want)
		}
	}
}

// Every type of value, in fields, lists and maps.
func TestWalk(t *testing.T) {
	text := []byte{
		0x11, 0x12, 0x13, 7, 0x14, 0x81, 1, 0x15, 2, 0x16, 0x80, 0x80, 1, // true, false, bytes and integers
		0x17, 1, 2, 3, 4, 5, 6, 7, 8, // double
		0x18, 3, 'a', 'b', 'c',
		0x19, 2<<4 | typeTrue, 1, 2,
		0x1a, 15<<4 | typeByte, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		0x1b, 0, // empty map
		0x1b, 2, typeBinary<<4 | typeInt32, 1, 'k', 9, 1, 'l', 0x89, 1,
		0x0c, 0xa0, 1, 0x11, 0, // field 80: a structure with true
		0x1d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, // UUID
		0, 'x',
	}
	w := walker{rest: text}
	if err := w.structure(0); err != nil || string(w.rest) != "x" {
		t.Errorf("%q is left: %v", w.rest, err)
	}
	for n := range len(text) - 1 {
		w := walker{rest: text[:n]}
		if err := w.structure(0); err == nil {
			t.Errorf("the first %d bytes are not an error", n)
		}
	}
}
