package ablate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// FuzzRecord reads any file as what a run folder keeps of an ablation.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"state": "done", "ended": "x", "steps": 3, "seconds": 1.5}`))
	f.Add([]byte(`{"state": 1}`))
	f.Add([]byte("null"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		check.OK(t, os.WriteFile(filepath.Join(dir, RecordFile), b, 0o666))
		r, err := readRecord(dir)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		j := job{record: r}
		j.settled(true)
		j.settled(false)
	})
}
