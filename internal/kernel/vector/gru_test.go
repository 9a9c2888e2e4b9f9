package vector

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// TestGRUGates compares the gates with their definitions over all sizes of numbers.
func TestGRUGates(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		var worst float64
		h, new, reset, update, gate := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
		sweep(10*sweepStep+31, func(x []float32) {
			n := len(x)
			copy(reset, x)
			copy(update, x)
			copy(new, x)
			clear(h)
			GRU(h[:n], new[:n], reset[:n], update[:n], gate[:n])
			for i, v := range x {
				w := float64(v)
				if v != v {
					if new[i] == new[i] || reset[i] == reset[i] || update[i] == update[i] || h[i] == h[i] {
						t.Fatalf("of NaN: got %v, %v, %v, %v", new[i], reset[i], update[i], h[i])
					}
					continue
				}
				s, c := 1/(1+math.Exp(-w)), math.Tanh(w)
				for got, want := range map[float32]float64{reset[i]: s, update[i]: s, new[i]: c, h[i]: (1 - s) * c} {
					worst = max(worst, math.Abs(float64(got)-want))
				}
			}
		})
		t.Logf("largest error of a gate %.2g", worst)
		if !(worst <= 2e-7) {
			t.Errorf("largest error of a gate %.2g", worst)
		}
	})
}
