package geometric

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed geometric.cu
var geometricText string

var geometricSource = cuda.Source{Name: "geometric", Text: geometricText}

// device names a step for the CUDA device.
func device(prepare func(c *exec.DeviceCall) (exec.Step, error)) map[string]func(c *exec.DeviceCall) (exec.Step, error) {
	return map[string]func(c *exec.DeviceCall) (exec.Step, error){cuda.Name: prepare}
}

// threads returns the grid of so many threads, warps that of so many warps.
func threads(n int) cuda.Grid { return cuda.Grid{X: cuda.Blocks(n, 256), Threads: 256} }
func warps(n int) cuda.Grid   { return cuda.Grid{X: cuda.Blocks(n, 8), Threads: 256} }

// kernelNumbers are the kernels as geometric.cu numbers them.
var kernelNumbers = map[string]int{Heat: 0, Linear: 1, Squared: 2, Inverse: 3}

// room shares memory out, in pieces that begin at multiples of 256 bytes.
type room struct{ bytes int64 }

func (r *room) words(n int) cuda.Pointer {
	at := r.bytes
	r.bytes += (4*int64(n) + 255) / 256 * 256
	return cuda.Pointer(at)
}

// comparisonCUDA compares the neighbourhoods of some anchors before and after a head, as neighbourhood does it for one.
type comparisonCUDA struct {
	Options
	k, n, channels, groups int // points of an anchor, width before the head and behind it, groups that are normalised
	per                    int // points of a thread of a tile

	whole, xSquares, xScales, zSquares, norms, x2, z2, e, sums, means, shifts cuda.Pointer

	mark, squares, normalise, distances, mean, compare, losses, factors, spread, gradient *cuda.Kernel
}

// newComparisonCUDA prepares the comparison for chunks of so many anchors, with memory from r: base is to be added by place. It is nil
// where neighbourhoods are larger than a grid.
func newComparisonCUDA(c *exec.DeviceCall, o Options, anchors, k, n, channels, groups int, r *room) *comparisonCUDA {
	x := &comparisonCUDA{Options: o, k: k, n: n, channels: channels, groups: groups, per: 4}
	switch {
	case k <= 16:
		x.per = 1
	case k <= 32:
		x.per = 2
	}
	if tiles := x.tiles(k); tiles*max(tiles, x.tiles(channels)) > 65535 || int64(anchors)*int64(k)*int64(max(k, groups)) > 1<<31-1 {
		return nil
	}
	rows := anchors * k
	x.whole, x.xSquares, x.zSquares, x.norms = r.words(anchors), r.words(rows), r.words(rows), r.words(rows*max(1, groups))
	x.x2, x.z2, x.e, x.sums = r.words(rows*k), r.words(rows*k), r.words(rows*k), r.words(2*rows)
	x.means, x.shifts, x.xScales = r.words(2*anchors), r.words(anchors), r.words(rows)
	load := func(name string) *cuda.Kernel { return loadGeometric(c, name, o, x.per) }
	x.mark, x.squares, x.normalise, x.distances = load("whole_anchors"), load("point_squares"), load("normalise_groups"), load("point_distances")
	x.mean, x.compare, x.losses, x.factors = load("mean_distances"), load("compare_kernels"), load("anchor_losses"), load("pair_factors")
	x.spread, x.gradient = load("spread_gradient"), load("normalise_gradient")
	return x
}

// loadGeometric returns a kernel of geometric.cu.
func loadGeometric(c *exec.DeviceCall, name string, o Options, per int) *cuda.Kernel {
	return cuda.Load(c, &geometricSource, name, cuda.Value("KERNEL", kernelNumbers[o.Kernel]), cuda.Is("RELATIVE", o.Scale == Relative), cuda.Value("PER", per))
}

// place adds where the memory lies.
func (x *comparisonCUDA) place(base cuda.Pointer) {
	for _, p := range []*cuda.Pointer{&x.whole, &x.xSquares, &x.xScales, &x.zSquares, &x.norms, &x.x2, &x.z2, &x.e, &x.sums, &x.means, &x.shifts} {
		*p += base
	}
}

// tiles is how many tiles cover n points, or channels.
func (x *comparisonCUDA) tiles(n int) int { return cuda.Blocks(n, 16*x.per) }

// find marks the anchors of which no point is missing: each has count numbers of near.
func (x *comparisonCUDA) find(near cuda.Pointer, anchors, count int) error {
	return x.mark.Launch(warps(anchors), x.whole, near, anchors, count)
}

// run compares the points x (anchors*K, n) with z (anchors*K, C), after find. It writes the anchors' losses, the gradient of scale times
// their sum for z to dz, and z with its groups normalised to y, which may be z; without groups z is left alone, and y is not written.
func (x *comparisonCUDA) run(points, z, y, dz, losses cuda.Pointer, anchors int, scale float32) error {
	rows, groups, each := anchors*x.k, 0, 0
	length := float32(1)
	if x.groups > 0 {
		groups, each = rows*x.groups, x.channels/x.groups
		w := neighbourhood{Options: x.Options}
		length = w.length(x.groups)
	} else {
		y = z
	}
	var scales any
	if x.Scale == Unit {
		scales = x.xScales
	}
	k, tiles := x.k, x.tiles(x.k)
	pairs := cuda.Grid{X: anchors, Y: tiles * tiles, Threads: 16, ThreadsY: 16}
	channels := cuda.Grid{X: anchors, Y: tiles * x.tiles(x.channels), Threads: 16, ThreadsY: 16}
	var err error
	launch := func(kernel *cuda.Kernel, g cuda.Grid, args ...any) {
		if err == nil {
			err = kernel.Launch(g, args...)
		}
	}
	launch(x.squares, warps(rows), x.xSquares, scales, points, rows, x.n)
	launch(x.distances, pairs, x.x2, points, scales, x.xSquares, x.whole, k, x.n, tiles)
	if groups > 0 {
		launch(x.normalise, warps(groups), y, x.norms, z, groups, each, length)
	}
	launch(x.squares, warps(rows), x.zSquares, nil, y, rows, x.channels)
	launch(x.distances, pairs, x.z2, y, nil, x.zSquares, x.whole, k, x.channels, tiles)
	if x.Scale == Relative {
		launch(x.mean, cuda.Grid{X: anchors, Y: 2, Threads: 256}, x.means, x.x2, x.z2, x.whole, k)
	}
	launch(x.compare, warps(rows), x.e, x.sums, x.x2, x.z2, x.means, x.whole, anchors, k, scale, x.Epsilon)
	launch(x.losses, warps(anchors), losses, x.shifts, x.sums, x.means, x.whole, anchors, k)
	launch(x.factors, threads(rows*k), x.x2, x.e, x.z2, x.means, x.shifts, x.whole, anchors, k) // distances of x are done with
	launch(x.spread, channels, dz, y, x.x2, x.whole, k, x.channels, x.tiles(x.channels))
	if groups > 0 {
		launch(x.gradient, warps(groups), dz, y, x.norms, x.whole, groups, k*x.groups, each, length)
	}
	return err
}

// onCUDA is the step of Geometric: chunks of anchors as on the host.
func (g *geometricOp) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	s := g.sizes(shapesOf(c.In), 0)
	var r room
	rows := s.rows()
	x := newComparisonCUDA(c, g.Options, s.chunk, s.k, s.width, s.channels, g.groupsOf(s.groups), &r)
	if x == nil {
		return nil, nil
	}
	points, z, dz, losses := r.words(rows*s.width), r.words(rows*s.channels), r.words(rows*s.channels), r.words(s.b)
	base, err := cuda.Scratch(c, r.bytes)
	if err != nil {
		return nil, err
	}
	x.place(base)
	points, z, dz, losses = points+base, z+base, dz+base, losses+base
	gather, sum, total := loadGeometric(c, "anchor_points", g.Options, x.per), loadGeometric(c, "sum_rows", g.Options, x.per), loadGeometric(c, "total_loss", g.Options, x.per)
	return func() error {
		var bias *cuda.Matrix
		if g.bias {
			m := cuda.MatrixOf(c.In[gmBias], 0, s.out)
			bias = &m
		}
		w, dw := cuda.MatrixOf(c.In[gmWeight], 0, s.d), cuda.MatrixOf(c.Aux[0], 0, s.d)
		tokens := cuda.Matrix{At: points, LD: s.d}
		for first := 0; first < s.b; first += s.chunk {
			n := min(s.chunk, s.b-first)
			m := n * s.k * s.tokens
			near, anchors := cuda.At(c.In[gmNeighbours])+cuda.Pointer(4*first*(s.k-1)), cuda.At(c.In[gmAnchors])+cuda.Pointer(4*first*s.width)
			if err := x.find(near, n, s.k-1); err != nil {
				return err
			}
			values := n * s.k * s.width
			if err := gather.Launch(threads(values), points, anchors, c.In[gmQueue], near, x.whole, int64(values), s.k-1, s.q, s.width); err != nil {
				return err
			}
			if err := cuda.Multiply(c, cuda.Product{TransB: true, M: m, N: s.out, K: s.d}, tokens, w, cuda.Matrix{At: z, LD: s.out}, bias); err != nil {
				return err
			}
			if err := x.run(points, z, z, dz, losses+cuda.Pointer(4*first), n, 1/float32(s.b)); err != nil {
				return err
			}
			p := cuda.Product{TransA: true, M: s.out, N: s.d, K: m}
			if first > 0 {
				p.Beta = 1
			}
			if err := cuda.Multiply(c, p, cuda.Matrix{At: dz, LD: s.out}, tokens, dw, nil); err != nil {
				return err
			}
			if err := sum.Launch(cuda.Grid{X: cuda.Blocks(s.out, 32), Threads: 32, ThreadsY: 32}, c.Aux[1], dz, m, s.out, first > 0); err != nil {
				return err
			}
		}
		return total.Launch(threads(1), c.Out, losses, s.b, 1/float32(s.b))
	}, nil
}
