package convolve_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// sizes are convolutions that differ in all that the code tells apart: windows, strides and borders, images that a
// stride does not divide, channels that end within a panel, fill several, or lie wide apart, and rows of a window with
// more terms than a block, channels in several groups, blocks of several images and of a part of one, and windows that all begin in
// the border.
var sizes = []convolve.Sizes{
	{Batch: 1, In: 1, Out: 1, Height: 1, Width: 1, Kernel: 1, Stride: 1},
	{Batch: 3, In: 5, Out: 7, Height: 6, Width: 5, Kernel: 1, Stride: 1},
	{Batch: 2, In: 5, Out: 7, Height: 7, Width: 5, Kernel: 1, Stride: 2},
	{Batch: 1, In: 300, Out: 500, Height: 3, Width: 5, Kernel: 1, Stride: 1},
	{Batch: 7, In: 3, Out: 260, Height: 30, Width: 10, Kernel: 1, Stride: 1},
	{Batch: 2, In: 3, Out: 20, Height: 15, Width: 18, Kernel: 7, Stride: 2, Pad: 3},
	{Batch: 3, In: 4, Out: 33, Height: 7, Width: 7, Kernel: 3, Stride: 2, Pad: 1},
	{Batch: 2, In: 17, Out: 3, Height: 7, Width: 9, Kernel: 3, Stride: 1, Pad: 1},
	{Batch: 1, In: 16, Out: 16, Height: 5, Width: 4, Kernel: 3, Stride: 3, Pad: 2},
	{Batch: 2, In: 2, Out: 2, Height: 5, Width: 5, Kernel: 2, Stride: 3},
	{Batch: 1, In: 256, Out: 40, Height: 4, Width: 5, Kernel: 3, Stride: 1, Pad: 1},
	{Batch: 1, In: 40, Out: 256, Height: 5, Width: 4, Kernel: 3, Stride: 2, Pad: 1},
	{Batch: 1, In: 200, Out: 400, Height: 3, Width: 3, Kernel: 3, Stride: 1, Pad: 1},
	{Batch: 9, In: 70, Out: 65, Height: 5, Width: 7, Kernel: 3, Stride: 1, Pad: 1},
	{Batch: 3, In: 64, Out: 64, Height: 9, Width: 6, Kernel: 3, Stride: 2, Pad: 1},
	{Batch: 2, In: 6, Out: 5, Height: 3, Width: 300, Kernel: 3, Stride: 1, Pad: 1},
	{Batch: 2, In: 8, Out: 90, Height: 40, Width: 30, Kernel: 3, Stride: 1},
	{Batch: 2, In: 15, Out: 20, Height: 10, Width: 10, Kernel: 9, Stride: 1, Pad: 4},
	{Batch: 2, In: 15, Out: 5, Height: 18, Width: 18, Kernel: 9, Stride: 9},
	{Batch: 2, In: 20, Out: 30, Height: 60, Width: 50, Kernel: 5, Stride: 3, Pad: 2},
	{Batch: 3, In: 140, Out: 12, Height: 20, Width: 19, Kernel: 3, Stride: 2, Pad: 1},
	{Batch: 2, In: 3, Out: 20, Height: 7, Width: 5, Kernel: 8, Stride: 8, Pad: 2},
	{Batch: 2, In: 18, Out: 20, Height: 7, Width: 5, Kernel: 8, Stride: 8, Pad: 2},
}

// each calls f for every product that an element of the result is the sum of, with its places in y, x and w.
func each(s convolve.Sizes, f func(y, x, w int)) {
	for b := range s.Batch {
		for i := range s.OutHeight() {
			for j := range s.OutWidth() {
				for u := range s.Kernel {
					for v := range s.Kernel {
						r, c := i*s.Stride+u-s.Pad, j*s.Stride+v-s.Pad
						if r < 0 || c < 0 || r >= s.Height || c >= s.Width {
							continue
						}
						for o := range s.Out {
							for in := range s.In {
								f(((b*s.OutHeight()+i)*s.OutWidth()+j)*s.Out+o, ((b*s.Height+r)*s.Width+c)*s.In+in, ((o*s.In+in)*s.Kernel+u)*s.Kernel+v)
							}
						}
					}
				}
			}
		}
	}
}

// operands are x, w and the gradient of y, and those for what is added.
type operands struct{ x, w, y, dx, dw, dy []float32 }

func operandsOf(s convolve.Sizes) operands {
	x, w, y := s.Batch*s.Height*s.Width*s.In, s.Out*s.In*s.Kernel*s.Kernel, s.Batch*s.OutHeight()*s.OutWidth()*s.Out
	return operands{gemm.Values(x, 1), gemm.Values(w, 2), gemm.Values(y, 3), gemm.Values(x, 4), gemm.Values(w, 5), gemm.Values(y, 6)}
}

// near fails unless x agrees with the sums of so many terms.
func near(t *testing.T, what string, x []float32, want []float64, terms int) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(x[i]) - want[i]); !(d <= 3e-7*float64(terms+8)) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, x[i], want[i])
		}
	}
}

// check compares the three passes with their definition, results and working memory being NaN before.
func check(t *testing.T, e *kernel.Engine, s convolve.Sizes) {
	t.Helper()
	o, c := operandsOf(s), e.NewConvolution(s)
	y, dx, dw := make([]float64, len(o.y)), make([]float64, len(o.x)), make([]float64, len(o.w))
	each(s, func(i, j, k int) {
		y[i] += float64(o.x[j]) * float64(o.w[k])
		dx[j] += float64(o.dy[i]) * float64(o.w[k])
		dw[k] += float64(o.dy[i]) * float64(o.x[j])
	})
	scratch := make([]float32, s.Scratch(e.Threads()))
	spoil := func(x ...[]float32) {
		for _, x := range append(x, scratch) {
			for i := range x {
				x[i] = kerneltest.NaN
			}
		}
	}
	spoil(o.y)
	c.Forward(o.y, o.x, o.w, convolve.After{}, scratch)
	near(t, "forward", o.y, y, s.In*s.Kernel*s.Kernel)
	for _, add := range []bool{false, true} {
		if add {
			o.dx, o.dw = gemm.Values(len(dx), 4), gemm.Values(len(dw), 5)
			for i, v := range o.dx {
				dx[i] += float64(v)
			}
			for i, v := range o.dw {
				dw[i] += float64(v)
			}
			spoil()
		} else {
			spoil(o.dx, o.dw)
		}
		c.Data(o.dx, o.dy, o.w, add, scratch)
		near(t, fmt.Sprintf("data, add %t", add), o.dx, dx, s.Out*s.Kernel*s.Kernel)
		spoil()
		c.Weights(o.dw, o.dy, o.x, add, scratch)
		near(t, fmt.Sprintf("weights, add %t", add), o.dw, dw, s.Batch*s.OutHeight()*s.OutWidth())
	}
	k := &vector.Columns{Mean: gemm.Values(s.Out, 7), Scale: gemm.Values(s.Out, 8), Shift: gemm.Values(s.Out, 9), ReLU: true}
	after := convolve.After{Columns: k, Add: gemm.Values(len(y), 10)}
	spoil(o.y)
	c.Forward(o.y, o.x, o.w, after, scratch)
	for i := range y {
		o := i % s.Out
		y[i] = max((y[i]-float64(k.Mean[o]))*float64(k.Scale[o])+float64(k.Shift[o])+float64(after.Add[i]), 0)
	}
	near(t, "what follows", o.y, y, s.In*s.Kernel*s.Kernel)
}

// TestConvolution compares every backend at every instruction set with the definition.
func TestConvolution(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, backend := range []string{"plain", "builtin", "auto"} {
			e, err := kernel.New(kernel.Options{Backend: backend, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sizes {
				t.Run(fmt.Sprintf("%s %v", backend, s), func(t *testing.T) { check(t, e, s) })
			}
			e.Close()
		}
	})
}

// TestConvolutionThreads: the number of threads changes no bit.
func TestConvolutionThreads(t *testing.T) {
	for _, backend := range []string{"builtin", "auto"} {
		var first [][]float32
		for _, threads := range []int{1, 2, 5} {
			e, err := kernel.New(kernel.Options{Backend: backend, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range sizes {
				o, c, scratch := operandsOf(s), e.NewConvolution(s), make([]float32, s.Scratch(threads))
				c.Forward(o.y, o.x, o.w, convolve.After{}, scratch)
				c.Data(o.dx, o.dy, o.w, false, scratch)
				c.Weights(o.dw, o.dy, o.x, false, scratch)
				all := slices.Concat(o.y, o.dx, o.dw)
				if threads == 1 {
					first = append(first, all)
				} else if !slices.Equal(all, first[i]) {
					t.Errorf("%s, %v: %d threads give other bits than one", backend, s, threads)
				}
			}
			e.Close()
		}
	}
}
