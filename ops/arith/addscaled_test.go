package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// AddScaled adds a constant: the gradient goes to x alone, whatever the factor.
func TestAddScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []float32{0, 1, -2.5} {
		x, y := optest.F32s(r, "x", 3, 700), optest.F32s(r, "y", 3, 700)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return AddScaled(ns[0], ns[1], ns[2]) }
		in := []optest.Input{x, y, optest.In("s", nil, []float32{s})}
		got := optest.Eval(t, build, in...)
		for i, v := range got.F32 {
			want := x.Data.([]float32)[i] + s*y.Data.([]float32)[i]
			if d := v - want; d > 1e-6 || d < -1e-6 {
				t.Fatalf("s = %v: value %d is %v, want %v", s, i, v, want)
			}
		}
		grads, _ := optest.Gradients(t, build, []int{0}, in...)
		other, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return ns[0] }, []int{0}, in...)
		for i, v := range grads[0] {
			if v != other[0][i] {
				t.Fatalf("s = %v: gradient %d is %v, want that of x itself, %v", s, i, v, other[0][i])
			}
		}
	}
}

func TestAddScaledShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for want, in := range map[string][]optest.Input{
		"want arrays of one shape": {optest.F32s(r, "x", 2, 3), optest.F32s(r, "y", 3, 2), optest.F32s(r, "s")},
		"want a scalar":                {optest.F32s(r, "x", 2, 3), optest.F32s(r, "y", 2, 3), optest.F32s(r, "s", 2)},
	} {
		optest.BuildError(t, "add scaled", want, func() { _, ns := optest.Nodes(in); AddScaled(ns[0], ns[1], ns[2]) })
	}
}
