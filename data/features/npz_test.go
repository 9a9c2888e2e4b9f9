package features

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// allRows reads a matrix of a file.
func allRows(path, tensor string) ([]float32, error) {
	m, err := OpenMatrix(path, tensor)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	x := make([]float32, m.Rows()*m.Width())
	return x, m.ReadRows(0, x)
}

// TestDamagedNPZ: whatever byte of an archive is changed, a member has its values or is refused, as it is where its checksum is gone.
func TestDamagedNPZ(t *testing.T) {
	for _, name := range []string{"all.npz", "packed.npz"} {
		whole := filetest.Read(t, "testdata/"+name)
		want, err := allRows("testdata/"+name, "f4")
		if err != nil {
			t.Fatal(err)
		}
		path, found := filepath.Join(t.TempDir(), name), 0
		for i := range whole {
			b := slices.Clone(whole)
			b[i] ^= 1 << (i % 8)
			filetest.Write(t, path, b)
			got, err := allRows(path, "f4")
			if err != nil {
				found++
			} else if !slices.Equal(got, want) {
				t.Errorf("%s: byte %d changed: %v", name, i, got)
			}
		}
		if found < 100 {
			t.Errorf("%s: %d changes found", name, found)
		}
	}
}

// TestNPZWithoutSum: a checksum of zeros is one, which the package archive/zip takes for none.
func TestNPZWithoutSum(t *testing.T) {
	for _, name := range []string{"all.npz", "packed.npz"} {
		b := filetest.Read(t, "testdata/"+name)
		at := strings.LastIndex(string(b), "f4.npy") - 46 // the entry of the directory, whose name is the last
		if at < 0 || string(b[at:at+4]) != "PK\x01\x02" {
			t.Fatalf("%s: no entry of a directory at %d", name, at)
		}
		clear(b[at+16 : at+20])
		_, err := allRows(filetest.Temp(t, name, b), "f4")
		if err == nil || !strings.Contains(err.Error(), "f4.npy was damaged: its CRC-32 is ") || !strings.Contains(err.Error(), "and 00000000 is written in the archive: copy the file again") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadCRC: a stored member whose checksum is wrong is refused, as numpy refuses it.
func TestBadCRC(t *testing.T) {
	path := "../../../shared/cases/arrays/bad_crc.npz"
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no ", path)
	}
	m, err := OpenMatrix(path, "")
	if err == nil {
		t.Fatal(fmt.Sprint("opened with rows ", m.Rows()))
	}
	if !strings.Contains(err.Error(), "was damaged: its CRC-32 is") {
		t.Error(err)
	}
}
