package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, n := range []int{0, 1, 511, 512, 513, 100000} {
		want := bytes.Repeat([]byte("x"), n)
		check.OK(t, os.WriteFile(path, want, 0o644))
		for _, most := range []int64{0, int64(n)} {
			if got, err := Read(path, most); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes within %d: %d bytes, %v", n, most, len(got), err)
			}
		}
	}
	var large *SizeError
	if _, err := Read(path, 99999); !errors.As(err, &large) || large.Size != 100000 || large.Limit != 99999 || !strings.Contains(err.Error(), path+" has 100000 bytes, more than the 99999") {
		t.Errorf("got %v", err)
	}
	var kind *KindError
	if _, err := Read(dir, 1); !errors.As(err, &kind) || !strings.Contains(err.Error(), dir+" is a folder") {
		t.Errorf("got %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A file that grows while it is read ends at the limit.
func TestRestOfAGrowingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	check.OK(t, os.WriteFile(path, make([]byte, 3000), 0o644))
	f, size := check.Get2(Open(path, 4000))(t)
	defer f.Close()
	check.OK(t, os.Truncate(path, 1<<20))
	var large *SizeError
	if b, err := Rest(f, size, 4000); !errors.As(err, &large) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A device has no end; a pipe waits for somebody who writes.
func TestDevicesAndPipes(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero")
	}
	var kind *KindError
	if _, err := Read("/dev/zero", 0); !errors.As(err, &kind) || !strings.Contains(err.Error(), "/dev/zero is a device") {
		t.Errorf("got %v", err)
	}
}
