package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/process"
)

// TestFillFolder: a folder is there as a whole or not at all, one process writes it at a time, and what killed ones left goes, whatever
// folder it was for; what others have there stays.
func TestFillFolder(t *testing.T) {
	for _, how := range []string{"", FlockFails, FlockLies} {
		simulated(t, how)
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		dead := process.Self()
		dead.PID = 1 << 30
		left := func(name string, o Owner) {
			check.OK(t, os.MkdirAll(filepath.Join(dir, name, "sub"), 0o777))
			writeOwner(t, filepath.Join(dir, name), o, 0)
		}
		left(".tmp-out", Owner{Program: ownProgram, Identity: dead, Token: "x"})
		left(".tmp-another", Owner{Program: ownProgram, Identity: dead, Token: "y"})
		left(".tmp-foreign", Owner{Program: "another", Identity: dead, Token: "z"})
		alive := Owner{Program: ownProgram, Identity: process.Identity{Host: "elsewhere", Boot: "1"}, Token: "a"}
		left(".tmp-alive", alive)
		for _, name := range []string{".tmp-out2", ".tmp-started"} { // processes that were killed before they wrote the owner file
			if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o777), os.WriteFile(filepath.Join(dir, name, OwnerFile), nil, 0o666)); err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-time.Hour)
			check.OK(t, os.Chtimes(filepath.Join(dir, name, OwnerFile), old, old))
		}
		write := func(text string) error {
			return FillFolder(out, func(string, ...any) {}, func(dir string) error {
				if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
					t.Errorf("begins with %v (%v)", list, err)
				}
				if text == "" {
					return os.ErrInvalid
				}
				var held *HeldError
				if err := FillFolder(out, nil, func(string) error { return nil }); !errors.As(err, &held) {
					t.Errorf("two write the folder: %v", err)
				}
				return os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o666)
			})
		}
		count := func(want int, where string) {
			t.Helper()
			if list, err := os.ReadDir(where); err != nil || len(list) != want {
				t.Errorf("flock %q: %s has %v (%v)", how, where, list, err)
			}
		}
		if err := write(""); !errors.Is(err, os.ErrInvalid) {
			t.Error(err)
		}
		count(2, dir)
		if err := write("x"); err != nil {
			t.Error(err)
		}
		count(3, dir)
		count(1, out)
		if err := FillFolder(out, nil, func(string) error { return nil }); err == nil {
			t.Error("a folder with something in it is replaced")
		}
		count(3, dir)
		check.OK(t, os.MkdirAll(filepath.Join(dir, ".tmp-b", "mine"), 0o777))
		if err := FillFolder(filepath.Join(dir, "b"), nil, func(string) error { return nil }); err == nil {
			t.Error("a folder of somebody is emptied")
		}
		count(1, filepath.Join(dir, ".tmp-b"))
	}
}
