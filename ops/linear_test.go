package ops

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range [][3]int{{1, 1, 1}, {3, 4, 5}, {7, 33, 2}} {
		x, w, b := f32s(r, "x", s[0], s[1]), f32s(r, "w", s[2], s[1]), f32s(r, "b", s[2])
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }
		got := eval(t, build, x, w, b)
		want := make([]float32, s[0]*s[2])
		for i := range s[0] {
			for j := range s[2] {
				v := b.data.([]float32)[j]
				for k := range s[1] {
					v += x.data.([]float32)[i*s[1]+k] * w.data.([]float32)[j*s[1]+k]
				}
				want[i*s[2]+j] = v
			}
		}
		near(t, "linear", got.F32, want, 1e-5)
		checkGrad(t, build, []int{0, 1, 2}, 1e-2, 1e-3, x, w, b)
	}
}
