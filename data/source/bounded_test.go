//go:build unix

package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
)

// A large file, a pipe and a device under the name of a list are refused, not read.
func TestLargeListsAreNotRead(t *testing.T) {
	var large *files.SizeError
	list := filetest.Sparse(t, files.MaxList+1, "[")
	for name, load := range map[string]func() error{
		"captions": func() error { _, err := LoadCaptions("", []string{list}, data.Options{}); return err },
		"karpathy": func() error { _, err := LoadKarpathy(list, "", "train", data.Options{}); return err },
	} {
		var err error
		if took := budgettest.Allocated(func() { err = load() }); !errors.As(err, &large) || took > 1<<20 {
			t.Errorf("%s: %v, took %d bytes", name, err, took)
		}
	}
	dir := t.TempDir()
	pipe, device := filepath.Join(dir, "pipe.json"), filepath.Join(dir, "device.json")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o644), os.Symlink("/dev/zero", device)); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{pipe: "is a pipe", device: "is a device"} {
		if _, err := LoadCaptions("", []string{path}, data.Options{}); err == nil || !strings.Contains(err.Error(), path+" "+want) {
			t.Errorf("%s is a list: %v", path, err)
		}
	}
}
