package cuda_test

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// TestDevice copies values to the device and back, adds and rounds them there, and multiplies.
func TestDevice(t *testing.T) {
	d := cudatest.Open(t)
	t.Log(d.Info())
	const n = 5000
	buffers := make([]*cuda.Buffer, 3)
	for i := range buffers {
		m, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		buffers[i] = m.Buffer(0, exec.Spec{Shape: tensor.Shape{n}}).(*cuda.Buffer)
	}
	x, y, h := buffers[0], buffers[1], buffers[2]
	for i := range n {
		x.Host().F32[i], y.Host().F32[i] = float32(i), float32(2*i)
	}
	for _, b := range []*cuda.Buffer{x, y} {
		if err := b.Store(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Add(y.Pointer(), x.Pointer(), n); err != nil {
		t.Fatal(err)
	}
	if err := d.Round(h.Pointer(), y.Pointer(), n); err != nil {
		t.Fatal(err)
	}
	if err := y.Fetch(); err != nil {
		t.Fatal(err)
	}
	if err := h.Fetch(); err != nil {
		t.Fatal(err)
	}
	words := h.Host().F32
	for i := range n {
		if got := y.Host().F32[i]; got != float32(3*i) {
			t.Fatalf("element %d of the sum is %v, want %v", i, got, 3*i)
		}
		bits := math.Float32bits(words[i/2]) >> (16 * (i % 2)) << 16
		got, want := float64(math.Float32frombits(bits)), float64(3*i)
		if !(math.Abs(got-want) <= want/256) {
			t.Fatalf("element %d is rounded to %v, want %v", i, got, want)
		}
	}
}
