package features

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/process"
)

// Every form of the stored matrix that must be converted gives its numbers, from one copy.
func TestOpenSource(t *testing.T) {
	half := float32(5.9604645e-08) // 6e-8 rounds to 2^-24
	dir := filepath.Join(t.TempDir(), "made", "here")
	for _, c := range []struct{ path, tensor string }{
		{"float.parquet", ""}, {"double.parquet", "emb"}, {"fixed.parquet", ""}, {"gzip.parquet", ""}, {"columns.parquet", "image"}, {"columns.parquet", "text"}, {"rows", ""}, {"rows/", ""},
	} {
		path := "testdata/" + c.path
		for range 2 {
			m, err := OpenSource(path, c.tensor, dir)
			if err != nil {
				t.Error(err)
				continue
			}
			if m.Rows() != 3 || m.Width() != 4 || m.Type() != "F32" || m.Path() != path {
				t.Errorf("%s: %d rows of %d, %s", m.Path(), m.Rows(), m.Width(), m.Type())
			}
			row := make([]float32, 4)
			for i, want := range stored {
				if err := m.Row(i, row); err != nil || !slices.Equal(row, want) && !(i == 1 && row[1] == half) {
					t.Errorf("%s row %d: %v, %v, want %v", path, i, row, err, want)
				}
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 7 {
		t.Errorf("%d copies, %v", len(list), err)
	}
	if m, err := OpenSource("testdata/f4.npy", "", dir); err != nil || m.mapped == nil {
		t.Errorf("what is mapped: %v", err)
	}
}

// A copy is made anew where it is damaged and where its source has changed.
func TestCopyIsOfItsSource(t *testing.T) {
	dir := t.TempDir()
	path := filetest.Temp(t, "x.parquet", filetest.Read(t, "testdata/float.parquet"))
	first := func() string {
		t.Helper()
		m, err := OpenSource(path, "", dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	copied := first()
	whole := filetest.Read(t, copied)
	for _, b := range [][]byte{nil, whole[:len(whole)-1], bytes.ToUpper(whole)} {
		filetest.Write(t, copied, b)
		if again := first(); again != copied || !bytes.Equal(filetest.Read(t, again), whole) {
			t.Errorf("a copy of %d bytes stays", len(b))
		}
	}
}

// TestCopyIsOfTheContents: another time or place is no other source, and other bytes of the same size and time are.
func TestCopyIsOfTheContents(t *testing.T) {
	cache, folder := t.TempDir(), t.TempDir()
	bytesThen := filetest.Read(t, "testdata/row.pt")
	at := bytes.Index(bytesThen, binary.LittleEndian.AppendUint32(nil, math.Float32bits(firstOf(t, "testdata/rows.pt"))))
	for i, step := range []struct {
		change byte
		folder string
		copies int
	}{{0, folder, 1}, {0, folder, 1}, {0, t.TempDir(), 1}, {1, folder, 2}} {
		bytesThen[at] ^= step.change
		path := filepath.Join(step.folder, "a.pt")
		if err := errors.Join(os.WriteFile(path, bytesThen, 0o644), os.Chtimes(path, time.Time{}, time.Unix(1e9, 0))); err != nil {
			t.Fatal(err)
		}
		m, err := OpenSource(step.folder, "", cache)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if list, err := os.ReadDir(cache); err != nil || len(list) != step.copies {
			t.Errorf("step %d: %d copies, want %d: %v", i, len(list), step.copies, err)
		}
	}
}

// firstOf returns the first number of a file.
func firstOf(t *testing.T, path string) float32 {
	t.Helper()
	m, err := OpenMatrix(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	row := make([]float32, m.Width())
	if err := m.Row(0, row); err != nil {
		t.Fatal(err)
	}
	return row[0]
}

// What cannot be converted is refused with what is wrong, and leaves nothing behind.
func TestOpenSourceRefuses(t *testing.T) {
	folder := t.TempDir()
	filetest.Write(t, filepath.Join(folder, "a.pt"), filetest.Read(t, "testdata/row.pt"))
	filetest.Write(t, filepath.Join(folder, "b.pt"), filetest.Read(t, "testdata/named.pt"))
	whole := filetest.Read(t, "testdata/float.parquet")
	dir := t.TempDir()
	for _, c := range []struct{ path, tensor, want string }{
		{"testdata/null.parquet", "", "row 1 is null or empty"},
		{"testdata/nulls.parquet", "", "row 1 is null or empty, or has a value that is null"},
		{"testdata/none.parquet", "", "row 1 is null or empty"},
		{"testdata/uneven.parquet", "", "row 1 has 2 numbers, and row 0 has 4"},
		{"testdata/ints.parquet", "", "it has no column of lists of FLOAT, DOUBLE or FLOAT16"},
		{"testdata/empty.parquet", "", "it has no rows"},
		{"testdata/columns.parquet", "", "it has the columns image, text: name one of them"},
		{"testdata/columns.parquet", "emb", `it has no column of lists of FLOAT, DOUBLE or FLOAT16 "emb": it holds image, text`},
		{filetest.Temp(t, "cut.parquet", whole[:len(whole)-9]), "", "it is not a .parquet file that can be read"},
		{filetest.Temp(t, "text.parquet", []byte("text")), "", "it is not a .parquet file that can be read"},
		{"testdata/missing.parquet", "", "no such file"},
		{"testdata/missing", "", "no such file"},
		{t.TempDir(), "", "the folder has no .pt file"},
		{folder, "", "b.pt: it holds the tensors image, text.rows, count: name one of them"},
		{"testdata/f4.csv", "", `(got ".csv")`},
	} {
		if _, err := OpenSource(c.path, c.tensor, dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.path, err, c.want)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("%v are left behind (%v)", list, err)
	}
}

// A conversion tells how far it is, and one that is stopped leaves nothing behind.
func TestConvert(t *testing.T) {
	many := t.TempDir()
	for i := range 600 {
		filetest.Write(t, filepath.Join(many, fmt.Sprintf("%d.pt", i)), filetest.Read(t, "testdata/row.pt"))
	}
	for path, want := range map[string]string{"testdata/float.parquet": "[2/3 3/3]", "testdata/rows": "[1/3 3/3]", many: "[1/600 256/600 512/600 600/600]"} {
		dir := filepath.Join(t.TempDir(), "cache")
		ctx, stop := context.WithCancel(t.Context())
		err := Convert(ctx, path, "", dir, func(done, of int) {
			stop()
			if !process.Held() {
				t.Error("the process may end")
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a conversion that was stopped: %v", path, err)
		}
		stop()
		if err := Convert(ctx, path, "", dir, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a conversion that never began: %v", path, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("%s: %v are left behind (%v)", path, list, err)
		}
		var told []string
		tell := func(done, of int) { told = append(told, fmt.Sprintf("%d/%d", done, of)) }
		for range 2 { // the second time there is nothing to do
			if err := Convert(t.Context(), path, "", dir, tell); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(told); got != want {
			t.Errorf("%s: told %s, want %s", path, got, want)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || process.Held() {
			t.Errorf("%s: %d copies (%v)", path, len(list), err)
		}
	}
	for _, path := range []string{"testdata/f4.npy", "testdata/missing.parquet", "testdata/missing"} {
		if err := Convert(t.Context(), path, "", t.TempDir(), nil); err != nil {
			t.Errorf("%s is nothing to convert: %v", path, err)
		}
	}
}

// What a process left that was killed while it converted is written over by the next one.
func TestAbandonedConversion(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	filetest.Write(t, filepath.Join(dir, ".tmp-x.npy"), make([]byte, 1<<12))
	if err := Write(path, func(emit func([]float32) error) error { return emit([]float32{1}) }); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || list[0].Name() != "x.npy" {
		t.Errorf("%v, %v", list, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 128+4 {
		t.Errorf("%v, %v", st, err)
	}
}

// Damage to a .parquet file is an error or gives rows of one width, and ends no process.
func TestDamagedParquet(t *testing.T) {
	for _, name := range []string{"float", "double", "fixed", "gzip"} {
		whole := filetest.Read(t, "testdata/"+name+".parquet")
		for at := range whole {
			b := slices.Clone(whole)
			b[at] ^= 1 << (at % 8)
			for _, b := range [][]byte{b, whole[:at]} {
				rows := 0
				err := readParquet(bytes.NewReader(b), int64(len(b)), "emb", func([]float32) error { rows++; return nil }, func(int, int) {})
				if err == nil && rows > 1000 {
					t.Errorf("%s with another bit at %d has %d rows", name, at, rows)
				}
			}
		}
	}
}

func FuzzParquet(f *testing.F) {
	for _, name := range []string{"float", "double", "fixed", "gzip"} {
		f.Add(filetest.Read(f, "testdata/"+name+".parquet"), "emb")
		f.Add(filetest.Read(f, "testdata/"+name+".parquet"), "")
	}
	f.Fuzz(func(t *testing.T, b []byte, column string) {
		defer budgettest.Within(t, len(b)+len(column))()
		rows := 0
		err := readParquet(bytes.NewReader(b), int64(len(b)), column, func([]float32) error { rows++; return nil }, func(int, int) {})
		if err == nil && rows == 0 {
			t.Error("no rows and no error")
		}
	})
}

func FuzzNPZ(f *testing.F) {
	for _, name := range []string{"all.npz", "packed.npz"} {
		f.Add(filetest.Read(f, "testdata/"+name), "f4")
		f.Add(filetest.Read(f, "testdata/"+name), "f2")
	}
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		defer budgettest.Within(t, len(b)+len(name))()
		if len(b) > 1<<16 {
			return
		}
		path := filepath.Join(t.TempDir(), "x.npz")
		filetest.Write(t, path, b)
		m, err := OpenMatrix(path, name)
		if err != nil {
			return
		}
		defer m.Close()
		row := make([]float32, m.Width())
		for i := range min(m.Rows(), 100) {
			if err := m.ReadRows(i, row); err != nil {
				t.Errorf("row %d of %d: %v", i, m.Rows(), err)
			}
		}
	})
}

// A column that the library does not read rightly is refused.
func TestParquetOfLZ4(t *testing.T) {
	type row struct {
		Emb []float32 `parquet:"emb,lz4"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{[]float32{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	err := readParquet(bytes.NewReader(b.Bytes()), int64(b.Len()), "emb", func([]float32) error { return nil }, func(int, int) {})
	if err == nil || !strings.Contains(err.Error(), `column "emb" is not supported: it is compressed by LZ4`) {
		t.Error(err)
	}
}
