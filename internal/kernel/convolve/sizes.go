package convolve

// Sizes are those of a convolution of Batch images of In channels and Height x Width places with Out filters of
// Kernel x Kernel places, whose centres are Stride places apart, over images with a border of Pad zeros.
type Sizes struct {
	Batch, In, Out, Height, Width, Kernel, Stride, Pad int
}

// OutHeight is the number of rows of an image of the result.
func (s Sizes) OutHeight() int { return (s.Height+2*s.Pad-s.Kernel)/s.Stride + 1 }

// OutWidth is the number of columns of an image of the result.
func (s Sizes) OutWidth() int { return (s.Width+2*s.Pad-s.Kernel)/s.Stride + 1 }

// places are those of an image, out those of an image of the result.
func (s Sizes) places() int { return s.Height * s.Width }
func (s Sizes) out() int    { return s.OutHeight() * s.OutWidth() }

// terms are the products that an element of the result is the sum of.
func (s Sizes) terms() int { return s.Kernel * s.Kernel * s.In }

// weights is the number of weights.
func (s Sizes) weights() int { return s.Out * s.terms() }

// pointwise says whether the convolution is a product of the images as they lie.
func (s Sizes) pointwise() bool { return s.Kernel == 1 && s.Stride == 1 && s.Pad == 0 }

// FLOPs is the number of floating-point operations of each of the three passes, border included.
func (s Sizes) FLOPs() int64 {
	return 2 * int64(s.Batch) * int64(s.out()) * int64(s.Out) * int64(s.terms())
}
