package features

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/filetest"
)

// FuzzDescribe: whatever a file holds, it is described or refused.
func FuzzDescribe(f *testing.F) {
	exts := []string{".npy", ".npz", ".safetensors", ".pt", ".parquet"}
	for i, name := range []string{"f4.npy", "packed.npz", "two.safetensors", "rows.pt", "float.parquet"} {
		f.Add(filetest.Read(f, "testdata/"+name), i)
	}
	f.Fuzz(func(t *testing.T, b []byte, ext int) {
		if len(b) > 1<<16 || ext < 0 {
			return
		}
		path := filepath.Join(t.TempDir(), "x"+exts[ext%len(exts)])
		filetest.Write(t, path, b)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		d, err := Describe(ctx, path, true)
		if ctx.Err() != nil {
			t.Fatal("a file of 64 KiB takes ten seconds")
		}
		if err == nil && d.Holds == "" {
			t.Error("nothing is said of a file that is whole")
		}
	})
}
