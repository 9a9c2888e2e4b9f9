//go:build unix

package data

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/internal/files"
)

// sparse makes a file of n bytes that takes no room and begins with head.
func sparse(t *testing.T, n int64, head string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.jpg")
	if err := os.WriteFile(path, []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, n); err != nil {
		t.Skip(err)
	}
	return path
}

// allocated returns the bytes that f takes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A large file, a pipe and a device under the name of a list are refused, not read.
func TestLargeListsAreNotRead(t *testing.T) {
	var large *files.SizeError
	list := sparse(t, files.MaxList+1, "[")
	for name, load := range map[string]func() error{
		"captions": func() error { _, err := LoadCaptions("", []string{list}, Options{}); return err },
		"karpathy": func() error { _, err := LoadKarpathy(list, "", "train", Options{}); return err },
	} {
		var err error
		if took := allocated(func() { err = load() }); !errors.As(err, &large) || took > 1<<20 {
			t.Errorf("%s: %v, took %d bytes", name, err, took)
		}
	}
	dir := t.TempDir()
	pipe, device := filepath.Join(dir, "pipe.json"), filepath.Join(dir, "device.json")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o644), os.Symlink("/dev/zero", device)); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{pipe: "is a pipe", device: "is a device"} {
		if _, err := LoadCaptions("", []string{path}, Options{}); err == nil || !strings.Contains(err.Error(), path+" "+want) {
			t.Errorf("%s is a list: %v", path, err)
		}
	}
}
