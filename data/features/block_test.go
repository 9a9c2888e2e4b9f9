package features

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
)

// bf16File writes a matrix of bfloat16 whose data begins at a multiple of two or not.
func bf16File(t *testing.T, odd bool) string {
	header := fmt.Sprintf(`{"x":{"dtype":"BF16","shape":[3,4],"data_offsets":[0,24]}}%*s`, 7, "")
	for (len(header)%2 == 1) != odd {
		header += " "
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range 12 {
		b = binary.LittleEndian.AppendUint16(b, uint16(0x3f80+i*0x11)) // from 1 on
	}
	return filetest.Temp(t, "bf16.safetensors", b)
}

// TestReadRows: many rows at once are the rows one by one, of every type, mapped and not.
func TestReadRows(t *testing.T) {
	paths := []string{bf16File(t, false), bf16File(t, true)}
	for _, name := range []string{"f2.npy", "f4.npy", "f8.npy", "v2.npy", "one.safetensors"} {
		paths = append(paths, filepath.Join("testdata", name))
	}
	for _, path := range paths {
		for _, mapping := range []func(*os.File, int64) []byte{files.Map, unmapped} {
			m, err := openMatrix(path, "", mapping)
			if err != nil {
				t.Fatal(err)
			}
			var want []float32
			row := make([]float32, 4)
			for i := range 3 {
				if err := m.Row(i, row); err != nil {
					t.Fatal(err)
				}
				want = append(want, row...)
			}
			for first := range 4 {
				for n := range 4 - first {
					got := make([]float32, 4*n)
					if err := m.ReadRows(first, got); err != nil || !slices.Equal(got, want[4*first:4*(first+n)]) {
						t.Errorf("%s: %d rows from %d: %v, %v", path, n, first, got, err)
					}
				}
			}
			for _, c := range []struct{ first, length int }{{-1, 4}, {3, 4}, {0, 16}, {1, 12}, {0, 3}} {
				if err := m.ReadRows(c.first, make([]float32, c.length)); err == nil || !strings.Contains(err.Error(), "there are no rows") {
					t.Errorf("%+v: %v", c, err)
				}
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReadRowsOfAFileThatShrinks: it is an error, not the end of the process.
func TestReadRowsOfAFileThatShrinks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a fault looks like depends on the system")
	}
	rows := make([][]float32, 5000)
	for i := range rows {
		rows[i] = []float32{1, 2, 3, 4}
	}
	path := filetest.Temp(t, "a.npy", npy(rows))
	m, err := OpenMatrix(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if err := m.ReadRows(0, make([]float32, 4*5000)); err == nil || !strings.Contains(err.Error(), "a.npy") {
		t.Errorf("got %v", err)
	}
}
