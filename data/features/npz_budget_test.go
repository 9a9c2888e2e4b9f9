package features

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// npyHead is the head of an array of so many rows and columns of float32.
func npyHead(rows, columns int) []byte {
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns)
	text += strings.Repeat(" ", 117-len(text)) + "\n"
	return append([]byte(npyMagic+"\x01\x00\x76\x00"), text...)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// npzOf is a file with a compressed member of the given head and so many zeros.
func npzOf(t *testing.T, head []byte, n int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("x.npy")
	if err == nil {
		_, err = w.Write(head)
	}
	if err == nil {
		_, err = io.CopyN(w, zeros{}, n)
	}
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInflatedMembers: a compressed member becomes what its bytes, the directory and its header bear out, and memory is taken once for it.
func TestInflatedMembers(t *testing.T) {
	open := func(path string, most uint64) error {
		done := budgettest.WithinBytes(t, 0, most)
		m, err := OpenMatrix(path, "")
		done()
		if err == nil {
			err = m.Close()
		}
		return err
	}
	if err := open(npzOf(t, npyHead(5000, 1000), 20e6), 21<<20); err != nil {
		t.Error(err)
	}
	over := new(budget.Error)
	if err := open(npzOf(t, npyHead(200_000, 500), 400e6), 1<<20); !errors.As(err, &over) || !strings.Contains(err.Error(), "x.npy, which is compressed, takes 400 MB, more than the ") {
		t.Errorf("a bomb: %v", err)
	}
	for name, path := range map[string]string{"more than its header says": npzOf(t, npyHead(10, 10), 50e6), "less": npzOf(t, npyHead(1<<30, 100), 50e6)} {
		if err := open(path, 1<<20); err == nil || !strings.Contains(err.Error(), "rows of") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyMembers: a directory is searched in time that grows with it.
func TestManyMembers(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 70_000 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("array-of-a-long-name-%d.npy", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	done := budgettest.Within(t, b.Len())
	_, err := npzMember(bytes.NewReader(b.Bytes()), int64(b.Len()), "no")
	done()
	if err == nil || !strings.Contains(err.Error(), "and 69992 more") || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}

// TestSameMembers: a directory with a name twice is refused.
func TestSameMembers(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a.npy", "b.npy", "a.npy"} {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := npzMember(bytes.NewReader(b.Bytes()), int64(b.Len()), "b"); err == nil || err.Error() != "it has a.npy twice" {
		t.Error(err)
	}
}
