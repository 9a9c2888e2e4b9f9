package tune

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// FuzzTable reads any file as the cache of choices, adds to it, and finds what it added.
func FuzzTable(f *testing.F) {
	f.Add([]byte(`{"format": 3, "machines": [{"environment": {"processor": "Chip 9", "instructions": "avx512", "threads": 2, "program": "v1", "kernels": ["builtin", "onednn 2.6.3"]},
		"written": "2020-01-01T00:00:00Z", "products": {"NN 1x2x3 fp32": {"kernel": "mkl", "gflops": 3}}, "passed": {"NN": ["mkl"]}, "ended": {"NN": ["mkl", "mkl"]}}]}`))
	f.Add([]byte(`{"format": 3, "machines": [{"environment": {"kernels": null}, "passed": {"": [""]}}, null]}`))
	f.Add([]byte(`[]`))
	path := filepath.Join(f.TempDir(), "kernels.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{Cache, On} {
			x := NewTable(here, mode, path)
			x.Add("NT 4x5x6 fp32", fast)
			x.Tried("NT 4x5x6 fp32", "mkl", true)
			if err := x.Save(); err != nil {
				t.Fatal(err)
			}
			y := NewTable(here, Cache, path)
			if _, ok := y.Find("NT 4x5x6 fp32"); !ok || !y.Passed("NT 4x5x6 fp32", "mkl") {
				t.Errorf("what was added to %q is not found", b)
			}
		}
	})
}
