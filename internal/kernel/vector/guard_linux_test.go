package vector

import (
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// A kernel that reads or writes outside its slices crashes this test.
func TestVectorStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		var slices []func(n int) []float32
		for range 7 {
			slices = append(slices, kerneltest.Guarded(t, atEnd))
		}
		kerneltest.EachLevel(t, func(t *testing.T) {
			for n := range 140 {
				s := make([][]float32, len(slices))
				for i := range s {
					s[i] = slices[i](n)
					for j := range s[i] {
						s[i][j] = float32(j%7) - 3
					}
				}
				for _, k := range vectorKernels {
					k.run(s[:k.slices])
				}
				if n > 0 {
					SumRows(s[0][:min(n, 7)], s[1][:n-n%min(n, 7)])
				}
				words := slices[2]((n + 31) / 32)
				bits := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
				Dropout(s[0], s[1], bits, 2)
				if n > 0 {
					w := min(n, 9)
					BiasGELU(s[0][:n-n%w], s[1][:n-n%w], s[2][:w])
				}
				DropoutAdd(s[0], s[1], s[3], bits, 2)
				DropoutBits(bits, 1, 2, 0.5)
			}
		})
	}
}
