package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// scoreRows returns rows of n random scores, stride floats apart with guards between
// them, and a check that the guards are intact.
func scoreRows(r *rand.Rand, rows, n, stride int, special bool) (x []float32, intact func() bool) {
	x = make([]float32, (rows-1)*stride+n, rows*stride)
	all := x[:cap(x)]
	for i := range all {
		all[i] = guard
		if i%stride < n {
			all[i] = float32(r.NormFloat64() * 3)
			if special && r.IntN(6) == 0 {
				all[i] = specials[r.IntN(len(specials))]
			}
		}
	}
	return x, func() bool {
		for i, v := range all {
			if i%stride >= n && v != guard {
				return false
			}
		}
		return true
	}
}

// TestAttentionRows compares the passes over scores with their plain twins, on random
// shapes, strides and special values.
func TestAttentionRows(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for i := range 1500 {
			rows, n := 1+r.IntN(70), 1+r.IntN(140)
			stride, words, special := n+r.IntN(20), (n+31)/32+r.IntN(2), i%2 == 0
			bits := make([]int32, rows*words)
			for j := range bits {
				bits[j] = int32(r.Uint32())
			}
			if i%3 == 0 {
				bits = nil
			}
			a, intact := scoreRows(r, rows, n, stride, special)
			b, more := scoreRows(r, rows, n, stride, special)
			lse, _ := vectorSlice(r, rows, special)
			plain := append([]float32(nil), a...)
			twin, stat := append([]float32(nil), b...), append([]float32(nil), lse...)
			relative, absolute := 2e-6, 1e-44
			switch i % 5 {
			case 0, 1:
				SoftmaxRows(a, stride, n, bits, words, 1.25, lse)
				plainSoftmaxRows(plain, stride, n, bits, words, 1.25, stat)
			case 2:
				ExpRows(a, b, stride, n, lse, bits, words, 1.25)
				plainExpRows(plain, twin, stride, n, stat, bits, words, 1.25)
			case 3:
				c, _ := scoreRows(r, rows, n, stride, false)
				SoftmaxGradRows(a, b, c, stride, rows, n)
				plainSoftmaxGradRows(plain, twin, c, stride, rows, n)
				relative, absolute = 1e-5, 1e-3
				if special { // sums of huge values may overflow in one order and not in another
					continue
				}
			case 4:
				y, _ := vectorSlice(r, n, false)
				step := 1 + r.IntN(3)
				lse, stat = make([]float32, rows*step), make([]float32, rows*step)
				DotRows(lse, step, b, stride, rows, y, .5)
				plainDotRows(stat, step, twin, stride, rows, y, .5)
				relative, absolute = 1e-5, 1e-4
				if special {
					continue
				}
			}
			if !intact() || !more() {
				t.Fatalf("case %d: wrote between rows (%d rows of %d, stride %d)", i, rows, n, stride)
			}
			near := func(name string, got, want []float32, absolute float64) {
				for j := range want {
					if !close32(got[j], want[j], relative, absolute) {
						t.Fatalf("case %d: %s[%d] is %v, want %v (%d rows of %d, stride %d)", i, name, j, got[j], want[j], rows, n, stride)
					}
				}
			}
			near("scores", a, plain, absolute)
			near("second", b, twin, absolute)
			near("statistics", lse, stat, absolute+1e-6)
		}
	})
}

// TestSoftmaxRowsExtremes: scores far apart neither overflow nor give NaN, minus
// infinity is a probability of 0, and dropped NaN do not come back.
func TestSoftmaxRowsExtremes(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, tt := range []struct{ x, want []float32 }{
			{[]float32{1e30, -1e30, 0}, []float32{1, 0, 0}},
			{[]float32{-1e4, -1e4}, []float32{.5, .5}},
			{[]float32{math.MaxFloat32, math.MaxFloat32, -kerneltest.Inf, -kerneltest.Inf}, []float32{.5, .5, 0, 0}},
			{[]float32{-kerneltest.Inf, 3}, []float32{0, 1}},
			{[]float32{-kerneltest.Inf}, []float32{kerneltest.NaN}}, // no key at all to choose from
			{[]float32{kerneltest.NaN, 1}, []float32{kerneltest.NaN, kerneltest.NaN}},
		} {
			var lse [1]float32
			x := append([]float32(nil), tt.x...)
			SoftmaxRows(x, len(x), len(x), nil, 0, 1, lse[:])
			for i := range x {
				if !close32(x[i], tt.want[i], 0, 0) {
					t.Errorf("softmax of %v is %v, want %v", tt.x, x, tt.want)
					break
				}
			}
		}
		x, lse := []float32{kerneltest.NaN, kerneltest.NaN}, [1]float32{}
		SoftmaxRows(x, 2, 2, []int32{0}, 1, 1, lse[:])
		if x[0] != 0 || x[1] != 0 {
			t.Errorf("dropped NaN became %v", x)
		}
	})
}
