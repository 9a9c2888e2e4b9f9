package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
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
	kerneltest.EachLevel(t, func(t *testing.T) {
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

// AdamWEMA must do exactly what the two kernels that it stands for do.
func TestAdamWEMA(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for n := range 100 {
			got, want := make([][]float32, 5), make([][]float32, 5)
			for i := range got {
				got[i], _ = vectorSlice(r, n, i != 2)
				if i == 2 {
					square(got[i])
				}
				want[i] = append([]float32{}, got[i]...)
			}
			AdamWEMA(got[0], got[1], got[2], got[3], got[4], testAdamW, 0.005)
			AdamW(want[0], want[1], want[2], want[3], testAdamW)
			EMA(want[4], want[0], 0.005)
			for i := range got {
				if j, ok := same(got[i], want[i]); !ok {
					t.Fatalf("length %d, slice %d, element %d: got %v, want %v", n, i, j, got[i][j], want[i][j])
				}
			}
		}
	})
}
