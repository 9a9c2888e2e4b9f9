package cuda_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// TestBorrow copies large values from where they lie, small ones not, and more places than stay known are not borrowed.
func TestBorrow(t *testing.T) {
	d := cudatest.Open(t)
	const n = 1 << 18
	m, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	b := m.Buffer(0, exec.Spec{Shape: tensor.Shape{n}}).(*cuda.Buffer)
	if done, err := d.Borrow(b, exec.Array{Shape: tensor.Shape{4}, F32: make([]float32, 4)}); done || err != nil {
		t.Errorf("four values: borrowed %t (%v)", done, err)
	}
	refused := 0
	var kept [][]float32
	for k := range 40 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i + k)
		}
		kept = append(kept, x)
		for range 2 { // a place that is known
			done, err := d.Borrow(b, exec.Array{Shape: tensor.Shape{n}, F32: x})
			if err != nil {
				t.Fatal(err)
			}
			if !done {
				refused++
				continue
			}
			if err := d.Return(); err != nil {
				t.Fatal(err)
			}
			if err := b.Fetch(); err != nil {
				t.Fatal(err)
			}
			for i, v := range b.Host().F32 {
				if v != x[i] {
					t.Fatalf("place %d: element %d is %v, want %v", k, i, v, x[i])
				}
			}
		}
	}
	if refused == 0 || refused == 2*len(kept) {
		t.Errorf("%d of %d copies were not borrowed: want those beyond a number of places", refused, 2*len(kept))
	}
}
