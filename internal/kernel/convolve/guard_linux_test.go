package convolve_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// A convolution that reads or writes outside its operands crashes this test.
func TestConvolutionStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		var slices []func(n int) []float32
		for range 6 {
			slices = append(slices, kerneltest.Guarded(t, atEnd))
		}
		kerneltest.EachLevel(t, func(t *testing.T) {
			e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for _, s := range sizes {
				for s.In*s.Out*s.Kernel*s.Kernel > 1024 {
					s.In, s.Out = (s.In+1)/2, (s.Out+1)/2
				}
				for s.Batch*s.Height*s.Width*max(s.In, s.Out) > 1024 && s.Height > s.Kernel {
					s.Batch, s.Height = 1, s.Height-1
				}
				if s.Height*s.Width*max(s.In, s.Out) > 1024 {
					continue
				}
				take := func(i, n int) []float32 {
					x := slices[i](n)
					vector.Fill(x, .1)
					return x
				}
				inputs, weights, results := s.Batch*s.Height*s.Width*s.In, s.Out*s.In*s.Kernel*s.Kernel, s.Batch*s.OutHeight()*s.OutWidth()*s.Out
				x, w, y, dx, dw, dy := take(0, inputs), take(1, weights), take(2, results), take(3, inputs), take(4, weights), take(5, results)
				c, scratch := e.NewConvolution(s), make([]float32, s.Scratch(e.Threads()))
				c.Forward(y, x, w, convolve.After{}, scratch)
				c.Data(dx, dy, w, true, scratch)
				c.Weights(dw, dy, x, true, scratch)
			}
		})
	}
}
