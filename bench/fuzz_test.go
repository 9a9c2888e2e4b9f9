package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// FuzzRead reads any file as an earlier result and compares with it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"step_ms": 1, "samples_per_second": 2, "phases": [{"name": "forward", "ms": 1}], "ops": [{}]}`))
	f.Add([]byte(`{"step_ms": 1e-320, "samples_per_second": 1e308, "phases": [null]}`))
	f.Add([]byte(`[{"step_ms": 1}]`))
	path := filepath.Join(f.TempDir(), "result.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		check.OK(t, os.WriteFile(path, b, 0o666))
		r, err := Read(path)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		Compare(path, r, r)
		Compare(path, Result{}, r)
	})
}
