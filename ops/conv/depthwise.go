package conv

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Depthwise is the convolution of each channel by itself, PyTorch's nn.Conv2d with as many groups as channels and
// without bias (Howard et al. 2017, equation 3): of x (B*H*W, C) with w (C, 1, k, k),
//
//	y[b, i, j, c] = sum over u, v of w[c, 0, u, v] x[b, i*stride + u - pad, j*stride + v - pad, c]
//
// with 0 for places outside the image: (B*Ho*Wo, C).
func Depthwise(x, w *gorgonia.Node, g Geometry) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "depthwise", Args: g.String(), Diff: []bool{true, true}, Shape: g.depthwise,
		Scratch: func(in []tensor.Shape, _ int) int { return in[1].TotalSize() },
		FLOPs: func(in []tensor.Shape) int64 {
			return 2 * int64(in[0][0]/g.in()*g.out()) * int64(in[1].TotalSize())
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			body := func(_, lo, hi int) {
				for row := lo; row < hi; row++ {
					y := c.Out.F32[row*d:][:d]
					clear(y)
					g.taps(row, func(tap, place int) {
						vector.MulAdd(y, c.In[0].F32[place*d:][:d], c.Scratch[tap*d:][:d])
					})
				}
			}
			return func() error {
				byTaps(c.Scratch, c.In[1].F32, g.Kernel*g.Kernel)
				c.Engine.For(c.Out.Dim(0), op.RowGrain(2*g.Kernel*g.Kernel*d), body)
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(g.depthwiseX(in[0].Shape()), dy, in[1]),
				op.Apply(g.depthwiseW(in[1].Shape()), dy, in[0])}
		},
	}, x, w)
}

// depthwise is the shape of the result.
func (g Geometry) depthwise(in []tensor.Shape) (tensor.Shape, error) {
	b, err := g.images(in[0])
	if err != nil {
		return nil, err
	}
	d := in[0][1]
	return tensor.Shape{b * g.out(), d}, op.Need(in[1].Eq(tensor.Shape{d, 1, g.Kernel, g.Kernel}),
		"want w (%d, 1, %d, %d) (got %v)", d, g.Kernel, g.Kernel, in[1])
}

// taps calls visit for each weight of the window of a row of the result that lies on a place, a row of x.
func (g Geometry) taps(row int, visit func(tap, place int)) {
	out, in, width := g.out(), g.in(), g.OutWidth()
	image, p := row/out, row%out
	top, left := p/width*g.Stride-g.Pad, p%width*g.Stride-g.Pad
	for u := max(0, -top); u < min(g.Kernel, g.Height-top); u++ {
		for v := max(0, -left); v < min(g.Kernel, g.Width-left); v++ {
			visit(u*g.Kernel+v, image*in+(top+u)*g.Width+left+v)
		}
	}
}

// byTaps writes w (C, taps) as (taps, C).
func byTaps(dst, w []float32, taps int) {
	channels := len(w) / taps
	for c := range channels {
		for t := range taps {
			dst[t*channels+c] = w[c*taps+t]
		}
	}
}

// depthwiseX returns dx of shape x for dy and w. Threads share out the images, whose windows overlap.
func (g Geometry) depthwiseX(x tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "depthwise dx", Args: g.String(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			y, err := g.depthwise([]tensor.Shape{x, in[1]})
			return x.Clone(), op.All(err, op.Need(y.Eq(in[0]), "dy must have shape %v (got %v)", y, in[0]))
		},
		Scratch: func(in []tensor.Shape, _ int) int { return in[1].TotalSize() },
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			body := func(_, lo, hi int) {
				clear(c.Out.F32[lo*g.in()*d : hi*g.in()*d])
				for row := lo * g.out(); row < hi*g.out(); row++ {
					dy := c.In[0].F32[row*d:][:d]
					g.taps(row, func(tap, place int) {
						vector.MulAdd(c.Out.F32[place*d:][:d], dy, c.Scratch[tap*d:][:d])
					})
				}
			}
			return func() error {
				byTaps(c.Scratch, c.In[1].F32, g.Kernel*g.Kernel)
				c.Engine.For(c.Out.Dim(0)/g.in(), 1, body)
				return nil
			}, nil
		},
	}
}

// depthwiseBlocks is the number of parts of the rows with sums of their own: fixed, so that the result does not depend
// on the threads.
const depthwiseBlocks = 16

// depthwiseW returns dw of shape w for dy and x.
func (g Geometry) depthwiseW(w tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "depthwise dw", Args: g.String(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			y, err := g.depthwise([]tensor.Shape{in[1], w})
			return w.Clone(), op.All(err, op.Need(y.Eq(in[0]), "dy must have shape %v (got %v)", y, in[0]))
		},
		Scratch: func([]tensor.Shape, int) int { return depthwiseBlocks * w.TotalSize() },
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, d, n := c.In[0].Dim(0), c.In[0].Dim(1), w.TotalSize()
			size := (rows + depthwiseBlocks - 1) / depthwiseBlocks
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					sum := c.Scratch[b*n:][:n]
					clear(sum)
					for row := b * size; row < min((b+1)*size, rows); row++ {
						dy := c.In[0].F32[row*d:][:d]
						g.taps(row, func(tap, place int) {
							vector.MulAdd(sum[tap*d:][:d], dy, c.In[1].F32[place*d:][:d])
						})
					}
				}
			}
			return func() error {
				c.Engine.For(depthwiseBlocks, 1, body)
				sum := c.Scratch[:n]
				for b := 1; b < depthwiseBlocks; b++ {
					vector.Add(sum, sum, c.Scratch[b*n:][:n])
				}
				byTaps(c.Out.F32, sum, d)
				return nil
			}, nil
		},
	}
}

// Border puts rows and columns of zeros around images x (B*H*W, C), before and after them: (B*(H+n)*(W+n), C) with n =
// before + after. So borders may be of two sizes, as those of TensorFlow are.
func Border(x *gorgonia.Node, height, width, before, after int) *gorgonia.Node {
	b := border{height, width, before, after}
	return op.Apply(&op.Op{
		Kind: "border", Args: fmt.Sprintf("%+v", b), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && height > 0 && width > 0 && before >= 0 && after >= 0 &&
				in[0][0]%(height*width) == 0, "want images (B*%d*%d, C) and borders of 0 or more (got %v, %d and %d)",
				height, width, in[0], before, after); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0] / (height * width) * b.places(), in[0][1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			inner, outer := height*width*c.Out.Dim(1), b.places()*c.Out.Dim(1)
			return c.For(c.In[0].Dim(0)/(height*width), op.RowGrain(outer), func(_, lo, hi int) {
				x, y := c.In[0].F32[lo*inner:hi*inner], c.Out.F32[lo*outer:hi*outer]
				clear(y)
				b.rows((hi-lo)*height*width, c.Out.Dim(1), func(inner, outer, n int) { copy(y[outer:][:n], x[inner:]) })
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			x := in[0].Shape()
			return gorgonia.Nodes{op.Apply(&op.Op{
				Kind: "border dx", Args: fmt.Sprintf("%+v", b), Diff: []bool{false},
				Shape: func([]tensor.Shape) (tensor.Shape, error) { return x.Clone(), nil },
				Host: func(c *exec.Call) (exec.Step, error) {
					return func() error {
						b.rows(c.Out.Dim(0), c.Out.Dim(1), func(inner, outer, n int) {
							copy(c.Out.F32[inner:][:n], c.In[0].F32[outer:])
						})
						return nil
					}, nil
				},
			}, dy)}
		},
	}, x)
}

type border struct{ height, width, before, after int }

// places are those of an image with its border.
func (b border) places() int {
	n := b.before + b.after
	return (b.height + n) * (b.width + n)
}

// rows calls visit for every row of places of images, of so many places together and d channels: where it begins among
// the values within the border and with it, and how many values it has.
func (b border) rows(places, d int, visit func(inner, outer, n int)) {
	wide := b.width + b.before + b.after
	for row := range places / b.width {
		image, y := row/b.height, row%b.height
		visit(row*b.width*d, (image*b.places()+(y+b.before)*wide+b.before)*d, b.width*d)
	}
}
