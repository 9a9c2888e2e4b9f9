package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWriters: columns as pyarrow, DuckDB, polars and fastparquet write them (tools/goldens/parquet_writers.py). Decimals and numbers
// without sign are those that were written, not the whole numbers that they lie in; days are not supported, and no damage.
func TestWriters(t *testing.T) {
	want := map[string]func(i int) string{
		"text": func(i int) string {
			if i == 4 {
				return ""
			}
			return fmt.Sprint("text ", i)
		},
		"score": func(i int) string { return strconv.FormatFloat(float64(i*25-100)/100, 'f', 2, 64) },
		"wide": func(i int) string {
			return strings.Repeat("-", min(1, max(0, i-1))) + "0.0000" + strconv.Itoa(max(i-1, 1-i))
		},
		"count": func(i int) string { return strconv.FormatUint(math.MaxUint64-uint64(i), 10) },
		"half":  func(i int) string { return strconv.FormatFloat(float64(i)/4, 'g', -1, 32) },
	}
	for writer, names := range map[string][]string{
		"arrow": {"text", "score", "wide", "count", "half"}, "duckdb": {"text", "score", "wide", "count", "half"},
		"polars": {"text", "score", "wide", "count", "half"}, "fastparquet": {"text", "count"},
	} {
		path := "testdata/" + writer + ".parquet"
		for _, name := range names {
			var got, all []string
			if err := Read(path, columns(name), func(r Row) error { got = append(got, r.Cells[0]); return r.Err }); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for i := range 9 {
				all = append(all, want[name](i))
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s, column %s: %q, want %q", path, name, got, all)
			}
		}
		if writer == "fastparquet" {
			continue
		}
		err := Read(path, columns("day"), func(Row) error { return nil })
		if err == nil || !strings.Contains(err.Error(), `column "day" is not supported: it holds values of type DATE: write texts or numbers`) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
