package runlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// FuzzMetrics reads any file as a metrics.jsonl and goes on with it: what is there is read or
// refused, and after the rewind of a resume the file is one, without later steps.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte(`{"step":5,"loss":5}`+"\n"+`{"step":2`), 5)
	f.Add([]byte(`{"step":1e300,"loss":null}`+"\n\n[]\n"+`{"step":"x"}`+"\n"+`{"Step":3,"step":null}`), 0)
	f.Add([]byte(`{"step":1.5}`+"\r\n"+`{"step":-1,"":1e999}`), -1)
	f.Add([]byte("\x00\xff\n"), 1<<62)
	path := filepath.Join(f.TempDir(), MetricsFile)
	f.Fuzz(func(t *testing.T, b []byte, last int) {
		defer budgettest.Within(t, len(b))()
		must(t, os.WriteFile(path, b, 0o666))
		if _, err := ReadMetrics(path); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		m, err := OpenMetrics(path, last)
		must(t, err)
		must(t, m.Close())
		rows, err := ReadMetrics(path)
		if err != nil {
			t.Fatalf("after a rewind to %d: %v\n%s", last, err, read(t, path))
		}
		for _, r := range rows {
			if r.Step > last {
				t.Errorf("a row of step %d is left after a rewind to %d", r.Step, last)
			}
		}
	})
}
