package features

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWriters: lists of numbers as DuckDB, polars and pyarrow write them (tools/goldens/parquet_writers.py): levels that are filled up to 256,
// FLOAT16, pages without values.
func TestWriters(t *testing.T) {
	paths, err := filepath.Glob("testdata/writers/*.parquet")
	if err != nil || len(paths) < 9 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		m, err := OpenSource(path, "", t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if m.Rows() != 45 || m.Width() != 6 {
			t.Fatalf("%s: %dx%d", path, m.Rows(), m.Width())
		}
		row, want := make([]float32, 6), make([]float32, 6)
		for i := range 45 {
			if err := m.Row(i, row); err != nil {
				t.Fatal(err)
			}
			at := i
			if filepath.Base(path) == "arrow_empty_pages.parquet" && i >= 20 && i < 40 {
				at -= 20
			}
			for k := range want {
				want[k] = float32((at*7+k*3)%64)/8 - 4
			}
			if !slices.Equal(row, want) {
				t.Fatalf("%s: row %d is %v, want %v", path, i, row, want)
			}
		}
		m.Close()
	}
}

// TestSharedWriters: the files of the shared cases give the rows that pyarrow reads.
func TestSharedWriters(t *testing.T) {
	const folder = "../../../shared/cases/parquet/"
	want, err := OpenMatrix(folder+"expected.npy", "")
	if os.IsNotExist(err) || err != nil {
		t.Skipf("the shared cases are not there: %v", err)
	}
	defer want.Close()
	for name, rounding := range map[string]float64{"duckdb_list": 0, "float16_list": 1.0 / 1024} {
		m, err := OpenSource(folder+name+".parquet", "", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if m.Rows() != want.Rows() || m.Width() != want.Width() {
			t.Fatalf("%s: %dx%d", name, m.Rows(), m.Width())
		}
		a, b := make([]float32, m.Width()), make([]float32, m.Width())
		for i := range m.Rows() {
			if err := m.Row(i, a); err != nil {
				t.Fatal(err)
			}
			if err := want.Row(i, b); err != nil {
				t.Fatal(err)
			}
			for k := range a {
				if d := float64(a[k] - b[k]); d > rounding*max(1, float64(b[k])) || -d > rounding*max(1, -float64(b[k]), float64(b[k])) {
					t.Fatalf("%s: row %d, column %d is %v, want %v", name, i, k, a[k], b[k])
				}
			}
		}
		m.Close()
	}
}
