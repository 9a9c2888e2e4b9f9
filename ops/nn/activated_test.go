package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestLinearActivated compares the fused op, and a linear layer with the activation behind it, with the activations by their definitions, in
// value and gradient.
func TestLinearActivated(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for name, of := range map[string]func(x float64) float64{
		"gelu":       func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
		"gelu_tanh":  func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
		"quick_gelu": func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
		"silu":       func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	} {
		for _, s := range append([][]int{{1, 1, 1}, {60, 20, 40}}, optest.RandomShapes(r, 4, 20, 20, 20)...) {
			in := []optest.Input{optest.F32s(r, "x", s[0], s[1]), optest.F32s(r, "w", s[2], s[1]), optest.F32s(r, "b", s[2])}
			fused := func(ns gorgonia.Nodes) *gorgonia.Node { return LinearActivated(ns[0], ns[1], ns[2], name) }
			want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Linear(ns[0], ns[1], ns[2]) }, in...).F32
			for i, v := range want {
				want[i] = float32(of(float64(v)))
			}
			optest.Near(t, name, optest.Eval(t, fused, in...).F32, want, 1e-5)
			optest.CheckGrad(t, fused, []int{0, 1, 2}, 1e-2, 4e-3, in...)
			parts := func(ns gorgonia.Nodes) *gorgonia.Node { return Activated(Linear(ns[0], ns[1], ns[2]), name) }
			optest.Near(t, name+" alone", optest.Eval(t, parts, in...).F32, want, 1e-5)
			optest.CheckGrad(t, parts, []int{0, 1, 2}, 1e-2, 4e-3, in...)
		}
	}
}

func TestSwiGLU(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, s := range append([][]int{{1, 1}, {40, 100}}, optest.RandomShapes(r, 6, 20, 40)...) {
		rows, h := s[0], s[1]
		x := optest.F32s(r, "x", rows, 2*h)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return SwiGLU(ns[0]) }
		want := make([]float32, rows*h)
		for i := range want {
			g, v := float64(x.Floats()[i/h*2*h+i%h]), float64(x.Floats()[i/h*2*h+h+i%h])
			want[i] = float32(g / (1 + math.Exp(-g)) * v)
		}
		optest.Near(t, "swiglu", optest.Eval(t, build, x).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestScaleColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range append([][]int{{1, 1}, {300, 7}}, optest.RandomShapes(r, 6, 20, 40)...) {
		x, scale := optest.F32s(r, "x", s[0], s[1]), optest.F32s(r, "scale", s[1])
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleColumns(ns[0], ns[1]) }
		want := make([]float32, s[0]*s[1])
		for i := range want {
			want[i] = x.Floats()[i] * scale.Floats()[i%s[1]]
		}
		optest.Near(t, "scale columns", optest.Eval(t, build, x, scale).F32, want, 0)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 2e-3, x, scale)
	}
}

func TestRepeatRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	x := optest.F32s(r, "x", 2, 5)
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return RepeatRows(ns[0], 3) }
	want := append(append(append([]float32{}, x.Floats()...), x.Floats()...), x.Floats()...)
	optest.Near(t, "copies", optest.Eval(t, build, x).F32, want, 0)
	optest.CheckGrad(t, build, []int{0}, 1e-1, 1e-3, x)
}

func TestMeanTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 6))
	for i := range 12 {
		rows, l, d := 1+r.IntN(5), 1+r.IntN(9), 1+r.IntN(30)
		skip := r.IntN(l)
		x, lengths := optest.F32s(r, "x", rows*l, d), optest.I32s("lengths", optest.RandomInts(r, rows, l+1), rows)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return MeanTokens(ns[0], ns[1], l, skip) }
		if i%2 == 0 {
			build = func(ns gorgonia.Nodes) *gorgonia.Node { return MeanTokens(ns[0], nil, l, skip) }
		}
		want := make([]float32, rows*d)
		for j := range want {
			end := l
			if i%2 == 1 {
				end = int(lengths.Data.([]int32)[j/d])
			}
			var sum float64
			for k := skip; k < end; k++ {
				sum += float64(x.Floats()[(j/d*l+k)*d+j%d])
			}
			want[j] = float32(sum / float64(max(end-skip, 1)))
		}
		optest.Near(t, "mean", optest.Eval(t, build, x, lengths).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-1, 1e-3, x, lengths)
	}
	x := optest.F32s(r, "x", 6, 2)
	optest.RunError(t, "lengths[1] is 4: want [0, 3]", func(ns gorgonia.Nodes) *gorgonia.Node { return MeanTokens(ns[0], ns[1], 3, 0) },
		x, optest.I32s("lengths", []int32{0, 4}, 2))
}
