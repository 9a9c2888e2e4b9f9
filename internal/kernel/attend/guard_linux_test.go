package attend_test

import (
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Attention that reads or writes outside its operands crashes this test.
func TestAttentionStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		var slices []func(n int) []float32
		for range 10 {
			slices = append(slices, kerneltest.Guarded(t, atEnd))
		}
		engines(t, func(t *testing.T, e *kernel.Engine) {
			for i := range 60 {
				n, keys, width := 1+i%7, 1+i*i%37, 1+i*7%26
				s := attend.Sizes{Keys: keys, Width: width, Queries: n, Backward: true}
				few := attend.Sizes{Keys: keys, Width: width, Queries: n}
				a, f := e.NewAttention(s), e.NewAttention(few)
				a.Use(make([]float32, s.Scratch()))
				f.Use(make([]float32, few.Scratch()))
				take := func(i, rows int) []float32 {
					x := slices[i](rows * width)
					vector.Fill(x, .1)
					return x
				}
				q, k, v, out, do, dq, dk, dv := take(0, n), take(1, keys), take(2, keys), take(3, n), take(4, n), take(5, n), take(6, keys), take(7, keys)
				lse := slices[8](n)
				words := (keys + 31) / 32
				bits := unsafe.Slice((*int32)(unsafe.Pointer(&slices[9](n * words)[0])), n*words)
				f.SetKeys(floats(k, width), floats(v, width), keys)
				f.Ahead(floats(k, width), keys)
				f.Forward(&attend.Block{N: n, Q: floats(q, width), LSE: lse, Bits: bits, Words: words, Scale: 1, Out: floats(out, width)})
				a.SetKeys(floats(k, width), floats(v, width), keys)
				a.Backward(&attend.Block{N: n, Q: floats(q, width), LSE: lse, Bits: bits, Words: words, Scale: 1},
					&attend.Grads{DOut: floats(do, width), DQ: floats(dq, width), DK: dk, DV: dv, LDDKV: width, Add: i%2 == 0})
			}
		})
	}
}
