package table

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// TestReadParquet: texts and numbers of several row groups, in the order that was asked for.
func TestReadParquet(t *testing.T) {
	type row struct {
		A *string `parquet:"a,optional"`
		B float64 `parquet:"b"`
		C int64   `parquet:"c"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	text := "two \xff"
	w := parquet.NewGenericWriter[row](f)
	for _, group := range [][]row{{{&text, 1.5, 7}, {nil, 2, -1}}, {{&text, 3, 0}}} {
		if _, err := w.Write(group); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil { // a row group
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var got []string
	take := func(r Row) error {
		got = append(got, fmt.Sprintf("%d: %s", r.Line, strings.Join(r.Cells, "|")))
		if r.Cells[0] == "0" {
			return errors.New("stop")
		}
		return nil
	}
	if err := Read(path, columns("c", "a", "b"), take); err == nil || err.Error() != "stop" || !slices.Equal(got, []string{"1: 7|two \uFFFD|1.5", "2: -1||2", "3: 0|two \uFFFD|3"}) {
		t.Errorf("%q, %v", got, err)
	}
	headless := func([]string) (Columns, error) { return Columns{At: []int{0}, Headless: true}, nil }
	for pick, want := range map[*Picker]string{ptr(headless): `its columns ["a" "b" "c"] are none that are known`, ptr(columns("d")): `no "d" in ["a" "b" "c"]`} {
		if err := Read(path, *pick, take); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.parquet")
	if err := parquet.WriteFile(empty, []row{}); err != nil {
		t.Fatal(err)
	}
	if err := Read(empty, columns("a"), take); err == nil || !strings.Contains(err.Error(), "it has no row") {
		t.Error(err)
	}
}

func ptr(p Picker) *Picker { return &p }

func FuzzParquet(f *testing.F) {
	names, err := filepath.Glob("../testdata/parquet/*.parquet")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b := filetest.Read(f, name)
		f.Add(b, "label")
		f.Add(b, "caption")
	}
	f.Fuzz(func(t *testing.T, b []byte, column string) {
		defer budgettest.Within(t, len(b)+len(column))()
		path := filepath.Join(t.TempDir(), "x.parquet")
		filetest.Write(t, path, b)
		rows := 0
		if err := Read(path, columns(column), func(r Row) error { rows++; return nil }); err == nil && rows == 0 {
			t.Error("no rows and no error")
		}
	})
}

// A column that the library does not read rightly is refused.
func TestReadParquetOfLZ4(t *testing.T) {
	type row struct {
		A string `parquet:"a,lz4"`
		B string `parquet:"b"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := parquet.WriteFile(path, []row{{"x", "y"}}); err != nil {
		t.Fatal(err)
	}
	take := func(Row) error { return nil }
	if err := Read(path, columns("a"), take); err == nil || !strings.Contains(err.Error(), `column "a" is not supported: it is compressed by LZ4`) {
		t.Error(err)
	}
	if err := Read(path, columns("b"), take); err != nil {
		t.Error(err)
	}
}
