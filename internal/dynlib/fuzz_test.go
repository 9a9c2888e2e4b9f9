package dynlib

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// FuzzVerdicts reads any file as the cache of verdicts on libraries.
func FuzzVerdicts(f *testing.F) {
	f.Add([]byte(`{"a": {"verdicts": [{"file": "x"}], "files": {"/x": "absent"}, "until": "2020-01-01T00:00:00Z"}}`))
	f.Add([]byte(`{"a": {"verdicts": null, "files": {"\u0000": ""}}}`))
	f.Add([]byte(`[]`))
	path := filepath.Join(f.TempDir(), "libraries.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		check.OK(t, os.WriteFile(path, b, 0o666))
		for _, c := range readVerdicts(path) {
			c.holds()
		}
	})
}
