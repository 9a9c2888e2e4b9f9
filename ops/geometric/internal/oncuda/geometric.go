package oncuda

import (
	"math"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

var geometricSource = cuda.NewSource(files, "geometric", "geometric.cu")

// warps returns the grid of so many warps.
func warps(n int) cuda.Grid { return cuda.Grid{X: cuda.Blocks(n, 8), Threads: 256} }

// Options say how a neighbourhood becomes a kernel matrix.
type Options struct {
	Kernel         int // as geometric.cu numbers them
	Epsilon        float32
	Unit, Relative bool // the scale
}

// length is the norm that a group of channels gets.
func (o Options) length(groups int) float32 {
	if o.Unit {
		return float32(1 / math.Sqrt(float64(groups)))
	}
	return 1
}

// comparison compares the neighbourhoods of some anchors before and after a head, as neighbourhood does it for one.
type comparison struct {
	Options
	k, n, channels, groups int // points of an anchor, width before the head and behind it, groups that are normalised
	per                    int // points of a thread of a tile

	whole, xSquares, xScales, zSquares, norms, x2, z2, e, sums, means, shifts cuda.Pointer

	mark, squares, normalise, distances, mean, compare, losses, factors, spread, gradient *cuda.Kernel
}

// words takes room for n values of four bytes.
func words(r *cuda.Room, n int) cuda.Pointer { return r.Take(4 * int64(n)) }

// newComparison prepares the comparison for chunks of so many anchors, with memory from r: base is to be added by
// place. It is nil where neighbourhoods are larger than a grid.
func newComparison(c *exec.DeviceCall, o Options, anchors, k, n, channels, groups int, r *cuda.Room) *comparison {
	x := &comparison{Options: o, k: k, n: n, channels: channels, groups: groups, per: 4}
	switch {
	case k <= 16:
		x.per = 1
	case k <= 32:
		x.per = 2
	}
	if tiles := x.tiles(k); tiles*max(tiles, x.tiles(channels)) > 65535 ||
		int64(anchors)*int64(k)*int64(max(k, groups)) > 1<<31-1 {
		return nil
	}
	rows := anchors * k
	x.whole, x.xSquares, x.zSquares, x.norms = words(r, anchors), words(r, rows), words(r, rows),
		words(r, rows*max(1, groups))
	x.x2, x.z2, x.e, x.sums = words(r, rows*k), words(r, rows*k), words(r, rows*k), words(r, 2*rows)
	x.means, x.shifts, x.xScales = words(r, 2*anchors), words(r, anchors), words(r, rows)
	load := func(name string) *cuda.Kernel { return loadGeometric(c, name, o, x.per) }
	x.mark, x.squares, x.normalise, x.distances = load("whole_anchors"), load("point_squares"),
		load("normalise_groups"), load("point_distances")
	x.mean, x.compare, x.losses, x.factors = load("mean_distances"), load("compare_kernels"), load("anchor_losses"),
		load("pair_factors")
	x.spread, x.gradient = load("spread_gradient"), load("normalise_gradient")
	return x
}

// loadGeometric returns a kernel of geometric.cu.
func loadGeometric(c *exec.DeviceCall, name string, o Options, per int) *cuda.Kernel {
	return cuda.Load(c, geometricSource, name, cuda.Value("KERNEL", o.Kernel), cuda.Is("RELATIVE", o.Relative),
		cuda.Value("PER", per))
}

// place adds where the memory lies.
func (x *comparison) place(base cuda.Pointer) {
	for _, p := range []*cuda.Pointer{&x.whole, &x.xSquares, &x.xScales, &x.zSquares, &x.norms, &x.x2, &x.z2, &x.e,
		&x.sums, &x.means, &x.shifts} {
		*p += base
	}
}

// tiles is how many tiles cover n points, or channels.
func (x *comparison) tiles(n int) int { return cuda.Blocks(n, 16*x.per) }

// find marks the anchors of which no point is missing: each has count numbers of near.
func (x *comparison) find(near cuda.Pointer, anchors, count int) {
	x.mark.Enqueue(warps(anchors), x.whole, near, anchors, count)
}

// run compares the points x (anchors*K, n) with z (anchors*K, C), after find. It writes the anchors' losses, the
// gradient of scale times their sum for z to dz, and z with its groups normalised to y, which may be z; without groups
// z is left alone, and y is not written.
func (x *comparison) run(points, z, y, dz, losses cuda.Pointer, anchors int, scale float32) {
	rows, groups, each := anchors*x.k, 0, 0
	length := float32(1)
	if x.groups > 0 {
		groups, each = rows*x.groups, x.channels/x.groups
		length = x.length(x.groups)
	} else {
		y = z
	}
	var scales any
	if x.Unit {
		scales = x.xScales
	}
	k, tiles := x.k, x.tiles(x.k)
	pairs := cuda.Grid{X: anchors, Y: tiles * tiles, Threads: 16, ThreadsY: 16}
	channels := cuda.Grid{X: anchors, Y: tiles * x.tiles(x.channels), Threads: 16, ThreadsY: 16}
	x.squares.Enqueue(warps(rows), x.xSquares, scales, points, rows, x.n)
	x.distances.Enqueue(pairs, x.x2, points, scales, x.xSquares, x.whole, k, x.n, tiles)
	if groups > 0 {
		x.normalise.Enqueue(warps(groups), y, x.norms, z, groups, each, length)
	}
	x.squares.Enqueue(warps(rows), x.zSquares, nil, y, rows, x.channels)
	x.distances.Enqueue(pairs, x.z2, y, nil, x.zSquares, x.whole, k, x.channels, tiles)
	if x.Relative {
		x.mean.Enqueue(cuda.Grid{X: anchors, Y: 2, Threads: 256}, x.means, x.x2, x.z2, x.whole, k)
	}
	x.compare.Enqueue(warps(rows), x.e, x.sums, x.x2, x.z2, x.means, x.whole, anchors, k, scale, x.Epsilon)
	x.losses.Enqueue(warps(anchors), losses, x.shifts, x.sums, x.means, x.whole, anchors, k)
	// distances of x are done with
	x.factors.Enqueue(cuda.Each(rows*k), x.x2, x.e, x.z2, x.means, x.shifts, x.whole, anchors, k)
	x.spread.Enqueue(channels, dz, y, x.x2, x.whole, k, x.channels, x.tiles(x.channels))
	if groups > 0 {
		x.gradient.Enqueue(warps(groups), dz, y, x.norms, x.whole, groups, k*x.groups, each, length)
	}
}

// Operands of Geometric, as its op has them.
const (
	gmAnchors = iota
	gmQueue
	gmNeighbours
	gmWeight
	gmBias
)

// Geometric is a comparison behind one linear layer.
type Geometric struct {
	Options
	Groups int // that are normalised, 0: none
	Bias   bool
	// Chunk is how many anchors are worked on at a time, for the shapes of the operands.
	Chunk func(in []tensor.Shape) int
}

// Step is that of the op.
func (g Geometric) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, q, width := c.In[gmAnchors].Shape[0], c.In[gmQueue].Shape[0], c.In[gmAnchors].Shape[1]
		out, d, k := c.In[gmWeight].Shape[0], c.In[gmWeight].Shape[1], c.In[gmNeighbours].Shape[1]+1
		tokens, chunk := width/d, g.Chunk(shapesOf(c.In))
		channels, rows := tokens*out, chunk*k
		r := &cuda.Room{}
		x := newComparison(c, g.Options, chunk, k, width, channels, g.Groups, r)
		if x == nil {
			return nil
		}
		points, z, dz, losses := words(r, rows*width), words(r, rows*channels), words(r, rows*channels), words(r, b)
		base := cuda.Scratch(c, r.Bytes)
		x.place(base)
		points, z, dz, losses = points+base, z+base, dz+base, losses+base
		gather, sum, total := loadGeometric(c, "anchor_points", g.Options, x.per),
			loadGeometric(c, "sum_rows", g.Options, x.per), loadGeometric(c, "total_loss", g.Options, x.per)
		return func() {
			var bias *cuda.Matrix
			if g.Bias {
				m := cuda.MatrixOf(c.In[gmBias], 0, out)
				bias = &m
			}
			w, dw := cuda.MatrixOf(c.In[gmWeight], 0, d), cuda.MatrixOf(c.Aux[0], 0, d)
			rowsAt := cuda.Matrix{At: points, LD: d}
			for first := 0; first < b; first += chunk {
				n := min(chunk, b-first)
				m := n * k * tokens
				near, anchors := cuda.At(c.In[gmNeighbours])+cuda.Pointer(4*first*(k-1)),
					cuda.At(c.In[gmAnchors])+cuda.Pointer(4*first*width)
				x.find(near, n, k-1)
				values := n * k * width
				gather.Enqueue(cuda.Each(values), points, anchors, c.In[gmQueue], near, x.whole, int64(values), k-1, q,
					width)
				cuda.Multiply(c, cuda.Product{TransB: true, M: m, N: out, K: d}, rowsAt, w,
					cuda.Matrix{At: z, LD: out}, bias)
				x.run(points, z, z, dz, losses+cuda.Pointer(4*first), n, 1/float32(b))
				p := cuda.Product{TransA: true, M: out, N: d, K: m}
				if first > 0 {
					p.Beta = 1
				}
				cuda.Multiply(c, p, cuda.Matrix{At: dz, LD: out}, rowsAt, dw, nil)
				sum.Enqueue(cuda.Grid{X: cuda.Blocks(out, 32), Threads: 32, ThreadsY: 32}, c.Aux[1], dz, m, out,
					first > 0)
			}
			total.Enqueue(cuda.Each(1), c.Out, losses, b, 1/float32(b))
		}
	})
}
