package conv

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// Geometry says how a window of Kernel x Kernel places moves over images of Height x Width places with a border of Pad
// places: Stride places at a time, as far as it fits.
type Geometry struct{ Height, Width, Kernel, Stride, Pad int }

// OutHeight is the number of rows of places of the result.
func (g Geometry) OutHeight() int { return g.sizes().OutHeight() }

// OutWidth is the number of columns of places of the result.
func (g Geometry) OutWidth() int { return g.sizes().OutWidth() }

func (g Geometry) sizes() convolve.Sizes {
	return convolve.Sizes{Height: g.Height, Width: g.Width, Kernel: g.Kernel, Stride: g.Stride, Pad: g.Pad}
}

// String is the form in which arguments of ops name a geometry.
func (g Geometry) String() string {
	return fmt.Sprintf("h=%d w=%d k=%d s=%d p=%d", g.Height, g.Width, g.Kernel, g.Stride, g.Pad)
}

// in are the places of an image, out those of an image of the result.
func (g Geometry) in() int  { return g.Height * g.Width }
func (g Geometry) out() int { return g.OutHeight() * g.OutWidth() }

// images returns how many images x (B*H*W, C) is.
func (g Geometry) images(x tensor.Shape) (int, error) {
	if err := op.All(
		op.Need(g.Height > 0 && g.Width > 0, "an image has at least one place (got %d x %d)", g.Height, g.Width),
		op.Need(g.Kernel > 0 && g.Stride > 0, "kernel and stride must be at least 1 (got %d and %d)", g.Kernel,
			g.Stride),
		op.Need(g.Pad >= 0 && g.Pad < max(g.Kernel, 1),
			"pad must be in [0, %d), so that each window sees a place (got %d)", g.Kernel, g.Pad),
		op.Need(min(g.Height, g.Width)+2*g.Pad >= g.Kernel,
			"a window of %d places does not fit into images of %d x %d with a border of %d", g.Kernel, g.Height,
			g.Width, g.Pad),
		op.Need(len(x) == 2, "want x (B*H*W, C)"),
	); err != nil {
		return 0, err
	}
	return x[0] / g.in(), op.Need(x[0]%g.in() == 0 && x[0] > 0,
		"rows of x must be a multiple of the %d x %d places of an image (got %d)", g.Height, g.Width, x[0])
}

// of returns the sizes of a convolution of x (B*H*W, Cin) by w (Cout, Cin, k, k).
func (g Geometry) of(x, w tensor.Shape) (convolve.Sizes, error) {
	s := g.sizes()
	b, err := g.images(x)
	if err != nil {
		return s, err
	}
	if err := op.Need(len(w) == 4 && w[2] == g.Kernel && w[3] == g.Kernel, "want w (Cout, Cin, %d, %d) (got %v)",
		g.Kernel, g.Kernel, w); err != nil {
		return s, err
	}
	s.Batch, s.In, s.Out = b, x[1], w[0]
	return s, op.Need(w[1] == x[1], "x has %d channels, w %d: groups are not supported, each filter reads all channels",
		x[1], w[1])
}
