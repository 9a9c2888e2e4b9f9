package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"gorgonia.org/tensor"
)

var convSource = cuda.NewSource(files, "conv", "conv.cu")

// ColumnBudget is how many values of columns are held at once, 64 MiB: about what the second-level cache of a device
// keeps from the kernel that writes them to the product that reads them. Those of one image are held in any case.
var ColumnBudget = int64(16 << 20)

// most is how many values the kernels of columns and weights count, in 32 bits.
const most = 1<<31 - 1

// convolution is a convolution on the device, by products of columns that are made some images at a time; conv.cu says
// how.
type convolution struct {
	convolve.Sizes
	c       *exec.DeviceCall
	direct  bool // columns are x as it lies, and packed weights are w
	terms   int  // k*k*Cin
	wide    int  // terms, rounded up to a multiple of 4
	in, out int  // places of an image and of its result
	images  int  // of a chunk

	columnsAt, packedAt, extraAt cuda.Pointer

	columns, uncolumns, pack, unpack *cuda.Kernel
}

// prepare prepares a convolution, with scratch of so many bytes of the caller's. It is nil where sizes are beyond what
// the kernels count, and the host does it.
func prepare(c *exec.DeviceCall, s convolve.Sizes, extra int64) *convolution {
	k := &convolution{Sizes: s, c: c, direct: s.Kernel == 1 && s.Stride == 1,
		terms: s.Kernel * s.Kernel * s.In, in: s.Height * s.Width, out: s.OutHeight() * s.OutWidth()}
	k.wide = (k.terms + 3) / 4 * 4
	image := int64(k.out) * int64(k.wide)
	k.images = int(max(1, min(int64(s.Batch), ColumnBudget/image)))
	k.images = cuda.Blocks(s.Batch, cuda.Blocks(s.Batch, k.images)) // chunks of nearly the same size
	if int64(k.images)*max(image, int64(k.in)*int64(s.In)) > most || int64(s.Out)*int64(k.wide) > most {
		return nil
	}
	columns, packed := int64(0), int64(0)
	if !k.direct {
		columns, packed = (4*int64(k.images)*image+255)/256*256, (4*int64(s.Out)*int64(k.wide)+255)/256*256
	}
	at := cuda.Scratch(c, columns+packed+extra)
	k.columnsAt, k.packedAt, k.extraAt = at, at+cuda.Pointer(columns), at+cuda.Pointer(columns+packed)
	load := func(name string) *cuda.Kernel { return cuda.Load(c, convSource, name, pieceOf(s.In)) }
	k.columns, k.uncolumns, k.pack, k.unpack = load("conv_columns"), load("conv_uncolumns"), load("conv_pack"),
		load("conv_unpack")
	return k
}

// pieceOf says how many of n neighbouring channels a thread has.
func pieceOf(n int) cuda.Macro {
	if n%4 == 0 {
		return cuda.Value("PIECE", 4)
	}
	return cuda.Value("PIECE", 1)
}

// piece is the number of channels of a thread.
func (k *convolution) piece() int {
	if k.In%4 == 0 {
		return 4
	}
	return 1
}

// weights returns operand at, (Cout, Cin, k, k), as it is multiplied: (Cout, wide).
func (k *convolution) weights(at int) cuda.Matrix {
	if k.direct {
		return cuda.MatrixOf(k.c.In[at], 0, k.terms)
	}
	k.pack.Enqueue(cuda.Each(k.Out*k.wide), k.packedAt, k.c.In[at], k.Out, k.In, k.Kernel*k.Kernel, k.wide)
	return cuda.Matrix{At: k.packedAt, LD: k.wide}
}

// chunks calls each for the images from one to another, exclusive, of each chunk; all images are one of a direct
// convolution.
func (k *convolution) chunks(each func(from, to int)) {
	step := k.images
	if k.direct {
		step = k.Batch
	}
	for from := 0; from < k.Batch; from += step {
		each(from, min(from+step, k.Batch))
	}
}

// gather returns the columns of operand at for images of it.
func (k *convolution) gather(at, from, to int) cuda.Matrix {
	x := cuda.MatrixOf(k.c.In[at], from*k.in*k.In, k.In)
	if k.direct {
		return x
	}
	places := (to - from) * k.out
	k.columns.Enqueue(cuda.Each(places*(k.wide/k.piece())), k.columnsAt, x.At, places, k.Height, k.Width, k.In,
		k.OutHeight(), k.OutWidth(), k.Kernel, k.Stride, k.Pad, k.wide)
	return cuda.Matrix{At: k.columnsAt, LD: k.wide}
}

// cols is how many columns the products have.
func (k *convolution) cols() int {
	if k.direct {
		return k.terms
	}
	return k.wide
}

// forward enqueues Out = columns of operand 0 times the transposed weights of operand 1.
func (k *convolution) forward() {
	w := k.weights(1)
	k.chunks(func(from, to int) {
		x := k.gather(0, from, to)
		y := cuda.MatrixOf(k.c.Out, from*k.out*k.Out, k.Out)
		cuda.Multiply(k.c, cuda.Product{TransB: true, M: (to - from) * k.out, N: k.Out, K: k.cols()}, x, w, y, nil)
	})
}

// data enqueues the gradient for x: Out from dy, operand 0, and the weights, operand 1.
func (k *convolution) data() {
	w := k.weights(1)
	k.chunks(func(from, to int) {
		dy, dx := cuda.MatrixOf(k.c.In[0], from*k.out*k.Out, k.Out), cuda.MatrixOf(k.c.Out, from*k.in*k.In, k.In)
		p := cuda.Product{M: (to - from) * k.out, N: k.cols(), K: k.Out}
		if k.direct {
			p.Beta = cuda.Beta(k.c)
			cuda.Multiply(k.c, p, dy, w, dx, nil)
			return
		}
		cuda.Multiply(k.c, p, dy, w, cuda.Matrix{At: k.columnsAt, LD: k.wide}, nil)
		places := (to - from) * k.in
		k.uncolumns.Enqueue(cuda.Each(places*(k.In/k.piece())), dx.At, k.columnsAt, places, k.Height, k.Width, k.In,
			k.OutHeight(), k.OutWidth(), k.Kernel, k.Stride, k.Pad, k.wide, k.c.Accumulate)
	})
}

// gradient enqueues the gradient for w: Out from dy, operand 0, and the columns of x, operand 1.
func (k *convolution) gradient() {
	to, beta := cuda.Matrix{At: k.packedAt, LD: k.wide}, float32(0)
	if k.direct {
		to, beta = cuda.MatrixOf(k.c.Out, 0, k.terms), cuda.Beta(k.c)
	}
	k.chunks(func(first, end int) {
		x := k.gather(1, first, end)
		dy := cuda.MatrixOf(k.c.In[0], first*k.out*k.Out, k.Out)
		p := cuda.Product{TransA: true, M: k.Out, N: k.cols(), K: (end - first) * k.out, Beta: beta}
		beta = 1
		cuda.Multiply(k.c, p, dy, x, to, nil)
	})
	if !k.direct {
		k.unpack.Enqueue(cuda.Each(k.Out*k.terms), k.c.Out, k.packedAt, k.Out, k.In, k.Kernel*k.Kernel, k.wide,
			k.c.Accumulate)
	}
}

// Sizes are those of a convolution of shapes x and w, which may not fit.
type Sizes func(x, w tensor.Shape) (convolve.Sizes, error)

// Forward is the step of the convolution of operand 0 with operand 1.
func Forward(sizes Sizes) cuda.Steps {
	return step(func(c *exec.DeviceCall) (convolve.Sizes, error) {
		return sizes(c.In[0].Shape, c.In[1].Shape)
	}, (*convolution).forward)
}

// Data is the step of its gradient for x of a shape.
func Data(sizes Sizes, x tensor.Shape) cuda.Steps {
	return step(func(c *exec.DeviceCall) (convolve.Sizes, error) {
		return sizes(x, c.In[1].Shape)
	}, (*convolution).data)
}

// Gradient is the step of its gradient for w of a shape.
func Gradient(sizes Sizes, w tensor.Shape) cuda.Steps {
	return step(func(c *exec.DeviceCall) (convolve.Sizes, error) {
		return sizes(c.In[1].Shape, w)
	}, (*convolution).gradient)
}

func step(sizes func(c *exec.DeviceCall) (convolve.Sizes, error), run func(*convolution)) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		s, err := sizes(c)
		if err != nil {
			cuda.Of(c).Note(err)
			return nil
		}
		k := prepare(c, s, 0)
		if k == nil {
			return nil
		}
		return func() { run(k) }
	})
}

// Folded is the convolution, and a pass over its result for what follows.
func Folded(sizes Sizes, eps float32, relu, added bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		filters, values := c.In[1].Shape[0], c.Out.Shape.TotalSize()
		s, err := sizes(c.In[0].Shape, c.In[1].Shape)
		if err != nil {
			cuda.Of(c).Note(err)
			return nil
		}
		k := prepare(c, s, 4*int64(filters))
		if k == nil {
			return nil
		}
		piece := pieceOf(filters)
		scale, normalise := cuda.Load(c, convSource, "conv_scale", piece),
			cuda.Load(c, convSource, "conv_normalise", piece)
		pieces := values
		if filters%4 == 0 {
			pieces = values / 4
		}
		return func() {
			k.forward()
			scale.Enqueue(cuda.Each(filters), k.extraAt, c.In[2], c.In[5], filters, eps)
			var add any
			if added {
				add = c.In[6]
			}
			normalise.Enqueue(cuda.Each(pieces), c.Out, c.In[4], k.extraAt, c.In[3], add, int64(values), filters, relu)
		}
	})
}
