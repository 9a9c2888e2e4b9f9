package safetensors

import (
	"bytes"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// A tensor that was spooled is written with the bytes of one in memory, and leaves nothing behind.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s := check.Get(NewSpool(dir))(t)
	x := make([]float32, 3*70001)
	for i := range x {
		x[i] = float32(i) / 3
	}
	for rest := x; len(rest) > 0; {
		n := min(len(rest), 4099)
		check.OK(t, s.Append(rest[:n]))
		rest = rest[n:]
	}
	var want, got bytes.Buffer
	ids := Tensor{Name: "ids", Shape: []int{2}, Data: []int64{1, 2}}
	check.OK(t, Write(&want, []Tensor{{"x", []int{70001, 3}, x}, ids}, nil))
	for range 2 { // as for a checksum before
		got.Reset()
		check.OK(t, Write(&got, []Tensor{{"x", []int{70001, 3}, s}, ids}, nil))
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatal("the file is another one than that of a tensor in memory")
		}
	}
	if err := Write(&got, []Tensor{{"x", []int{70000, 3}, s}}, nil); err == nil {
		t.Error("a shape of other elements is written")
	}
	check.OK(t, s.Close())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
