package ops

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// oracleBlocks is y_r = W x_r, or W^T x_r, for blocks w (n, d, d).
func oracleBlocks(x, w []float32, rows, n, d int, transposed bool) []float32 {
	y := make([]float32, len(x))
	for r := range rows {
		for b := range n {
			for i := range d {
				var s float64
				for j := range d {
					at := (b*d+i)*d + j
					if transposed {
						at = (b*d+j)*d + i
					}
					s += float64(w[at]) * float64(x[r*n*d+b*d+j])
				}
				y[r*n*d+b*d+i] = float32(s)
			}
		}
	}
	return y
}

func TestBlockDiagonal(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	for _, c := range []struct {
		rows int
		w    []int
	}{{1, []int{1, 1, 1}}, {3, []int{4, 2, 2}}, {5, []int{2, 3, 3}}, {4, []int{6, 6}}, {70, []int{3, 16, 16}}, {9, []int{8, 1, 1}}, {200, []int{64, 64}}} {
		n, d := metricBlocks(tensor.Shape(c.w))
		in := []input{f32s(r, "x", c.rows, n*d), f32s(r, "w", c.w...)}
		for _, transposed := range []bool{false, true} {
			build := func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], transposed) }
			want := oracleBlocks(in[0].data.([]float32), in[1].data.([]float32), c.rows, n, d, transposed)
			near(t, "block diagonal", eval(t, build, in...).F32, want, 1e-5)
			checkGrad(t, build, []int{0, 1}, 1e-1, 2e-3, in...)
		}
	}
}

func TestDiagonal(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2))
	in := []input{f32s(r, "x", 70, 33), f32s(r, "w", 33)}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }
	x, w := in[0].data.([]float32), in[1].data.([]float32)
	want := make([]float32, len(x))
	for i, v := range x {
		want[i] = v * w[i%33]
	}
	near(t, "diagonal", eval(t, build, in...).F32, want, 0)
	checkGrad(t, build, []int{0, 1}, 1e-1, 1e-3, in...)
}

// TestIdentityMetricsReturnTheirInput: the score of an untrained metric
// is that of the cosine, bit for bit.
func TestIdentityMetricsReturnTheirInput(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 3))
	x := f32s(r, "x", 40, 24)
	identity := func(n, d int) []float32 {
		w := make([]float32, n*d*d)
		for b := range n {
			for i := range d {
				w[(b*d+i)*d+i] = 1
			}
		}
		return w
	}
	for _, w := range []input{{"w", []int{4, 6, 6}, identity(4, 6)}, {"w", []int{24, 24}, identity(1, 24)}, {"w", []int{24, 1, 1}, identity(24, 1)}} {
		for _, transposed := range []bool{false, true} {
			got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], transposed) }, x, w)
			if !slices.Equal(got.F32, x.data.([]float32)) {
				t.Errorf("blocks %v, transposed %t: the identity changes its input", w.shape, transposed)
			}
		}
	}
	got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }, x, input{"w", []int{24}, identity(24, 1)})
	if !slices.Equal(got.F32, x.data.([]float32)) {
		t.Error("a diagonal of ones changes its input")
	}
}

// TestBlockDiagonalVector was worked by hand, folded on the side of the image.
func TestBlockDiagonalVector(t *testing.T) {
	got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], true) },
		input{"x", []int{1, 4}, []float32{1, 2, 3, 4}}, input{"w", []int{2, 2, 2}, []float32{1, .5, 0, 2, 1, 0, -1, 3}})
	if want := []float32{1, 4.5, -1, 12}; !slices.Equal(got.F32, want) {
		t.Errorf("got %v, want %v", got.F32, want)
	}
}

func TestMulExp(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 4))
	in := []input{f32s(r, "x", 90, 70), {"t", nil, []float32{1.25}}}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return MulExp(ns[0], ns[1]) }
	want := make([]float32, 90*70)
	for i, v := range in[0].data.([]float32) {
		want[i] = v * float32(math.Exp(1.25))
	}
	near(t, "mul exp", eval(t, build, in...).F32, want, 1e-6)
	checkGrad(t, build, []int{0, 1}, 1e-2, 1e-3, in...)
}

func TestMetricErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 5))
	_, ns := nodes([]input{f32s(r, "x", 2, 6), f32s(r, "w", 5), f32s(r, "blocks", 2, 2, 2), f32s(r, "odd", 2, 3, 2), f32s(r, "t", 2)})
	wantBuildError(t, "diagonal", "", func() { Diagonal(ns[0], ns[1]) })
	wantBuildError(t, "block diagonal", "2 blocks of 2 do not make up 6 channels", func() { BlockDiagonal(ns[0], ns[2], false) })
	wantBuildError(t, "block diagonal", "want square blocks", func() { BlockDiagonal(ns[0], ns[3], true) })
	wantBuildError(t, "mul exp", "want a scalar", func() { MulExp(ns[0], ns[4]) })
	wantBuildError(t, "combine", "want a weight for each", func() { Combine([]float32{1}, ns[0], ns[0]) })
}

// metricCases are the cases of the tests that all ops go through.
func metricCases() []opCase {
	r := rand.New(rand.NewPCG(31, 6))
	x := f32s(r, "x", 130, 96)
	return []opCase{
		{name: "diagonal", inputs: []input{x, f32s(r, "w", 96)}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }},
		{name: "block diagonal", inputs: []input{x, f32s(r, "w", 6, 16, 16)}, wrt: []int{0, 1},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], true) }},
		{name: "dense metric", inputs: []input{x, f32s(r, "w", 96, 96)}, wrt: []int{0, 1}, gemm: true,
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], false) }},
		{name: "mul exp", inputs: []input{x, {"t", nil, []float32{.5}}}, wrt: []int{0, 1}, build: func(ns gorgonia.Nodes) *gorgonia.Node { return MulExp(ns[0], ns[1]) }},
		{name: "combine", inputs: []input{x, f32s(r, "y", 130, 96), f32s(r, "z", 130, 96)}, wrt: []int{0, 1, 2},
			build: func(ns gorgonia.Nodes) *gorgonia.Node { return Combine([]float32{1, -2, .5}, ns...) }},
	}
}
