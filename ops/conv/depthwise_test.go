package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// depthwiseCases are ops that the CUDA device has no steps for.
func depthwiseCases() []optest.Case {
	r := rand.New(rand.NewPCG(31, 32))
	g := Geometry{Height: 7, Width: 6, Kernel: 3, Stride: 2, Pad: 1}
	return []optest.Case{
		{Name: "depthwise", Inputs: []optest.Input{optest.F32s(r, "x", 3*42, 40), optest.F32s(r, "w", 40, 1, 3, 3)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Depthwise(ns[0], ns[1], g) }},
		{Name: "grouped conv", Inputs: []optest.Input{optest.F32s(r, "x", 3*42, 24), optest.F32s(r, "w", 36, 8, 3, 3)}, WRT: []int{0, 1}, GEMM: true,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Grouped(ns[0], ns[1], 3, g) }},
		{Name: "responses", Inputs: []optest.Input{optest.F32s(r, "x", 3*42, 70)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Responses(ns[0], 42) }},
		{Name: "border", Inputs: []optest.Input{optest.F32s(r, "x", 3*42, 4)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Border(ns[0], 7, 6, 1, 2) }},
	}
}

func TestDepthwiseCases(t *testing.T) { optest.CheckCases(t, depthwiseCases()) }

func TestDepthwiseCUDA(t *testing.T) {
	optest.CheckCUDA(t, depthwiseCases(), "depthwise", "depthwise dx", "depthwise dw", "border", "border dx", "grouped conv",
		"grouped conv dx", "grouped conv dw", "responses", "responses dx")
}

// TestDepthwise: a convolution of each channel is that of all with weights that are 0 elsewhere.
func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, c := range []struct {
		g    Geometry
		b, d int
	}{{Geometry{1, 1, 1, 1, 0}, 1, 1}, {Geometry{5, 4, 3, 1, 1}, 2, 3}, {Geometry{9, 7, 5, 2, 2}, 2, 4}, {Geometry{8, 8, 7, 1, 3}, 1, 2}, {Geometry{6, 6, 2, 2, 0}, 3, 5}} {
		k := c.g.Kernel
		x, w := optest.F32s(r, "x", c.b*c.g.Height*c.g.Width, c.d), optest.F32s(r, "w", c.d, 1, k, k)
		whole := optest.F32s(r, "whole", c.d, c.d, k, k)
		clear(whole.Floats())
		for i := range c.d {
			copy(whole.Floats()[(i*c.d+i)*k*k:][:k*k], w.Floats()[i*k*k:])
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Depthwise(ns[0], ns[1], c.g) }
		want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Conv(ns[0], ns[1], c.g) }, x, whole)
		optest.Near(t, c.g.String(), optest.Eval(t, build, x, w).F32, want.F32, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, w)
	}
}

// TestBorder: a convolution of images with a border is that with padding.
func TestBorder(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	x, w := optest.F32s(r, "x", 2*20, 3), optest.F32s(r, "w", 2, 3, 3, 3)
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return Conv(Border(ns[0], 5, 4, 1, 1), ns[1], Geometry{Height: 7, Width: 6, Kernel: 3, Stride: 1})
	}
	want := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Conv(ns[0], ns[1], Geometry{Height: 5, Width: 4, Kernel: 3, Stride: 1, Pad: 1})
	}, x, w)
	optest.Near(t, "border", optest.Eval(t, build, x, w).F32, want.F32, 1e-6)
	optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, w)
	many := optest.F32s(r, "many", 8*64*64, 4) // enough for several threads
	bordered := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Border(ns[0], 64, 64, 0, 1) }, many).F32
	for i, v := range bordered {
		row, channel := i/4, i%4
		image, y, x := row/(65*65), row/65%65, row%65
		want := float32(0)
		if y < 64 && x < 64 {
			want = many.Floats()[(image*64*64+y*64+x)*4+channel]
		}
		if v != want {
			t.Fatalf("image %d, place %d, %d with the border: %v, want %v", image, y, x, v, want)
		}
	}
	one := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Border(ns[0], 1, 1, 1, 2) }, optest.In("x", []int{1, 1}, []float32{5})).F32
	for i, v := range one {
		if (i == 5) != (v == 5) || i != 5 && v != 0 {
			t.Errorf("a border of 1 before and 2 after: %v", one)
		}
	}
}
