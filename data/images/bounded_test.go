//go:build unix

package images

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
)

var sparse, allocated = filetest.Sparse, budgettest.Allocated

// A large file that is not an image is refused by its size or its header, not read.
func TestLargeFilesAreNotRead(t *testing.T) {
	var large *files.SizeError
	jpeg := "\xff\xd8\xff\xe0"
	for _, c := range []struct {
		name, path, want string
		size             bool
	}{
		{"3 GB", sparse(t, 3<<30, ""), "has 3221225472 bytes, more than the 366777216 that are read of such a file", true},
		{"300 MB of nothing", sparse(t, 300<<20, ""), "not a JPEG, PNG, WebP, GIF, BMP or TIFF image (314572800 bytes)", false},
		{"300 MB after the mark of a JPEG", sparse(t, 300<<20, jpeg), "header of the image is damaged", false},
	} {
		var err error
		took := allocated(func() { _, err = DecodeFile(c.path, 0) })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) || errors.As(err, &large) != c.size {
			t.Errorf("%s: %v", c.name, err)
		}
		if took > 1<<20 {
			t.Errorf("%s: took %d bytes", c.name, took)
		}
	}
}

// A large image that is one is read as a small one: what follows its end is no part of it.
func TestHeaderFirst(t *testing.T) {
	small, err := filepath.Glob("testdata/images/*.jpg")
	if err != nil || len(small) == 0 {
		t.Fatal("no photo", err)
	}
	b := filetest.Read(t, small[0])
	want, err := DecodeFile(small[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeFile(sparse(t, 2*headerFirst, string(b)), 0)
	if err != nil || string(got.Pix) != string(want.Pix) {
		t.Errorf("%v", err)
	}
	if _, err := DecodeFile(sparse(t, 2*headerFirst, string(b)), 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// A pipe and a device under the name of an image are errors at once.
func TestImagesAreFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, device := filepath.Join(dir, "pipe.jpg"), filepath.Join(dir, "device.jpg")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", device); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{pipe: "is a pipe", device: "is a device"} {
		done := make(chan error, 1)
		go func() { _, err := DecodeFile(path, 0); done <- err }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), path+" "+want) {
				t.Errorf("got %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s is waited for", path)
		}
	}
}
