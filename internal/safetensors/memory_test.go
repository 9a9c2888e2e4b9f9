package safetensors

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestMemoryOrder: numbers that are copied as they lie in memory are those that are put
// together from their bytes, as on processors of the other order.
func TestMemoryOrder(t *testing.T) {
	was := inOrder
	defer func() { inOrder = was }()
	x := make([]float32, pieceLen/4+3)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	x[1], x[2] = float32(math.Inf(-1)), -0.
	var files [2][]byte
	for i, order := range []bool{was, false} {
		inOrder = order
		var b bytes.Buffer
		check.OK(t, Write(&b, []Tensor{{Name: "x", Shape: []int{len(x)}, Data: x},
			{Name: "none", Shape: []int{0}, Data: []float32{}}}, nil))
		files[i] = b.Bytes()
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Fatal("the files differ")
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	check.OK(t, os.WriteFile(path, files[0], 0o666))
	f := check.Get(Open(path))(t)
	defer f.Close()
	convert := check.Get(Floats(F32))(t)
	start, length, _ := f.Span("x")
	for _, order := range []bool{false, was} {
		inOrder = order
		got, err := f.Float32("x")
		if err != nil || !slices.Equal(got, x) {
			t.Errorf("in order %t: other numbers, %v", order, err)
		}
		row := make([]float32, len(x))
		if convert(row, files[0][start:start+length]); !slices.Equal(row, x) {
			t.Errorf("in order %t: other rows", order)
		}
		if none, err := f.Float32("none"); err != nil || len(none) != 0 {
			t.Errorf("in order %t: %v, %v of no elements", order, none, err)
		}
	}
}
