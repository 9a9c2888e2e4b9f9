package similarity

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
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
		in := []optest.Input{optest.F32s(r, "x", c.rows, n*d), optest.F32s(r, "w", c.w...)}
		for _, transposed := range []bool{false, true} {
			build := func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], transposed) }
			want := oracleBlocks(in[0].Data.([]float32), in[1].Data.([]float32), c.rows, n, d, transposed)
			optest.Near(t, "block diagonal", optest.Eval(t, build, in...).F32, want, 1e-5)
			optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 2e-3, in...)
		}
	}
}

func TestDiagonal(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2))
	in := []optest.Input{optest.F32s(r, "x", 70, 33), optest.F32s(r, "w", 33)}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }
	x, w := in[0].Data.([]float32), in[1].Data.([]float32)
	want := make([]float32, len(x))
	for i, v := range x {
		want[i] = v * w[i%33]
	}
	optest.Near(t, "diagonal", optest.Eval(t, build, in...).F32, want, 0)
	optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 1e-3, in...)
}

// TestIdentityMetricsReturnTheirInput: the score of an untrained metric
// is that of the cosine, bit for bit.
func TestIdentityMetricsReturnTheirInput(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 3))
	x := optest.F32s(r, "x", 40, 24)
	identity := func(n, d int) []float32 {
		w := make([]float32, n*d*d)
		for b := range n {
			for i := range d {
				w[(b*d+i)*d+i] = 1
			}
		}
		return w
	}
	for _, w := range []optest.Input{optest.In("w", []int{4, 6, 6}, identity(4, 6)), optest.In("w", []int{24, 24}, identity(1, 24)), optest.In("w", []int{24, 1, 1}, identity(24, 1))} {
		for _, transposed := range []bool{false, true} {
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], transposed) }, x, w)
			if !slices.Equal(got.F32, x.Data.([]float32)) {
				t.Errorf("blocks %v, transposed %t: the identity changes its input", w.Shape, transposed)
			}
		}
	}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }, x, optest.In("w", []int{24}, identity(24, 1)))
	if !slices.Equal(got.F32, x.Data.([]float32)) {
		t.Error("a diagonal of ones changes its input")
	}
}

// TestBlockDiagonalVector was worked by hand, folded on the side of the image.
func TestBlockDiagonalVector(t *testing.T) {
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], true) },
		optest.In("x", []int{1, 4}, []float32{1, 2, 3, 4}), optest.In("w", []int{2, 2, 2}, []float32{1, .5, 0, 2, 1, 0, -1, 3}))
	if want := []float32{1, 4.5, -1, 12}; !slices.Equal(got.F32, want) {
		t.Errorf("got %v, want %v", got.F32, want)
	}
}

func TestMetricErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 5))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 2, 6), optest.F32s(r, "w", 5), optest.F32s(r, "blocks", 2, 2, 2), optest.F32s(r, "odd", 2, 3, 2), optest.F32s(r, "t", 2)})
	optest.BuildError(t, "diagonal", "", func() { Diagonal(ns[0], ns[1]) })
	optest.BuildError(t, "block diagonal", "2 blocks of 2 do not make up 6 channels", func() { BlockDiagonal(ns[0], ns[2], false) })
	optest.BuildError(t, "block diagonal", "want square blocks", func() { BlockDiagonal(ns[0], ns[3], true) })
	optest.BuildError(t, "mul exp", "want a scalar", func() { arith.MulExp(ns[0], ns[4]) })
	optest.BuildError(t, "combine", "want a weight for each", func() { arith.Combine([]float32{1}, ns[0], ns[0]) })
}

// metricCases are the cases of the tests that all ops go through.
func metricCases() []optest.Case {
	r := rand.New(rand.NewPCG(31, 6))
	x := optest.F32s(r, "x", 130, 96)
	return []optest.Case{
		{Name: "diagonal", Inputs: []optest.Input{x, optest.F32s(r, "w", 96)}, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Diagonal(ns[0], ns[1]) }},
		{Name: "block diagonal", Inputs: []optest.Input{x, optest.F32s(r, "w", 6, 16, 16)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], true) }},
		{Name: "dense metric", Inputs: []optest.Input{x, optest.F32s(r, "w", 96, 96)}, WRT: []int{0, 1}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return BlockDiagonal(ns[0], ns[1], false) }},
	}
}
