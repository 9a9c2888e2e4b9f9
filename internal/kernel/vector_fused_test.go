package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// same reports whether two slices hold the same bits, or NaN at the same places.
func same(got, want []float32) (at int, ok bool) {
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) && (got[i] == got[i] || w == w) {
			return i, false
		}
	}
	return 0, true
}

// BiasGELU must do exactly what the two kernels that it stands for do.
func TestBiasGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	eachLevel(t, func(t *testing.T) {
		for range 150 {
			rows, n := r.IntN(8), 1+r.IntN(200)
			pre, preIntact := vectorSlice(r, rows*n, true)
			out, outIntact := vectorSlice(r, rows*n, false)
			bias, _ := vectorSlice(r, n, true)
			sum, want := append([]float32{}, pre...), make([]float32, rows*n)
			AddRows(sum, bias)
			GELU(want, sum)
			BiasGELU(pre, out, bias)
			if i, ok := same(pre, sum); !ok {
				t.Fatalf("%d x %d, sum %d: got %v, want %v", rows, n, i, pre[i], sum[i])
			}
			if i, ok := same(out, want); !ok {
				t.Fatalf("%d x %d, value %d: got %v, want %v", rows, n, i, out[i], want[i])
			}
			if !preIntact() || !outIntact() {
				t.Fatalf("%d x %d: wrote outside", rows, n)
			}
		}
	})
}
