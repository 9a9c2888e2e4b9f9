package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/space"
)

var (
	centresSource = cuda.NewSource(files, "centres", "metric.cu", "centres.cu")
	membersSource = cuda.NewSource(files, "members", "pool.cuh", "members.cu")
	scoresSource  = cuda.NewSource(files, "scores", "metric.cu", "pool.cuh", "scores.cu")
)

// threads is how many threads a block has, and how many warps.
const threads, warps = 256, threads / 32

// tile is the side of the squares of pairs that a block works on.
const tile = 64

// grid is one of so many blocks.
func grid(blocks int) cuda.Grid { return cuda.Grid{X: blocks, Threads: threads} }

// spaceOf is the macro that says which distance kernels are compiled for.
func spaceOf(l space.Space) cuda.Macro {
	switch {
	case l.Euclid:
		return cuda.Value("SPACE", 2)
	case !l.One():
		return cuda.Value("SPACE", 1)
	}
	return cuda.Value("SPACE", 0)
}

// launch is a kernel with its grid; args are made when the step runs.
type launch struct {
	kernel *cuda.Kernel
	grid   cuda.Grid
	args   func() []any
}

// steps runs launches one after the other.
func steps(list ...launch) cuda.Step {
	return func() {
		for _, l := range list {
			l.kernel.Enqueue(l.grid, l.args()...)
		}
	}
}

// centreValues makes the launch that values the centres, operand 1 of which operand `count` tells how many are in use,
// for the rows of operand 0, and returns where the values are.
func centreValues(c *exec.DeviceCall, l space.Space, count int) (launch, cuda.Pointer) {
	rows, width, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0]
	values := cuda.Scratch(c, 4*int64(rows)*int64(total))
	across := cuda.Blocks(total, tile)
	return launch{cuda.Load(c, centresSource, "centre_values", spaceOf(l)), grid(cuda.Blocks(rows, tile) * across),
		func() []any {
			return []any{values, c.In[0], c.In[1], c.In[count], rows, total, width, across}
		}}, values
}

// NearestCentre finds the nearest centres.
func NearestCentre(l space.Space) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		const count = 2
		rows, width, total := c.In[0].Shape[0], c.In[0].Shape[1], c.In[1].Shape[0]
		first, values := centreValues(c, l, count)
		return steps(first, launch{cuda.Load(c, centresSource, "nearest_centre", spaceOf(l)),
			grid(cuda.Blocks(rows, warps)), func() []any {
				return []any{c.Out, c.Aux[0], values, c.In[0], c.In[1], c.In[count], rows, total, width, l.Groups()}
			}})
	})
}

// Entry computes the distances of rows from their entries into a graph, so many centres each.
type Entry struct {
	Entries  int
	Softness float32
	Space    space.Space
}

// Operands of Entry and its auxiliary results, as its op has them.
const (
	entryX = iota
	entryCentres
	entryPaths
	entryCount

	entryIndex = 0
	entryDots  = 1
)

// Forward is the step of the distances.
func (e Entry) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, width, total := c.In[entryX].Shape[0], c.In[entryX].Shape[1], c.In[entryCentres].Shape[0]
		first, values := centreValues(c, e.Space, entryCount)
		g := cuda.Grid{X: rows, Threads: threads, Shared: 8 * e.Entries}
		return steps(first, launch{cuda.Load(c, centresSource, "centre_distances", spaceOf(e.Space)), g, func() []any {
			return []any{c.Out, c.Aux[entryIndex], c.Aux[entryDots], values, c.In[entryX], c.In[entryCentres],
				c.In[entryPaths], c.In[entryCount],
				total, width, e.Entries, e.Softness, e.Space.Groups()}
		}})
	})
}

// Backward computes their gradient.
func (e Entry) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		const out, dy = entryCount + 1, entryCount + 2
		rows, width, total := c.In[entryX].Shape[0], c.In[entryX].Shape[1], c.In[entryCentres].Shape[0]
		g := cuda.Grid{X: rows, Threads: threads, Shared: 4 * e.Entries * e.Space.Groups()}
		return steps(launch{cuda.Load(c, centresSource, "centre_distances_dx", spaceOf(e.Space)), g, func() []any {
			return []any{c.Out, c.InAux[out][entryIndex], c.InAux[out][entryDots], c.In[out], c.In[dy], c.In[entryX],
				c.In[entryCentres], c.In[entryPaths], c.In[entryCount],
				total, width, e.Entries, e.Softness, e.Space.Groups()}
		}})
	})
}

// Members sorts the columns of a pool of owners by cluster.
func Members(at pool.Operands, clusters int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		const count, chunk = 0, 512
		n, chunks := c.In[at.Queue].Shape[0], cuda.Blocks(c.In[at.Queue].Shape[0], chunk)
		places := cuda.Scratch(c, 4*int64(chunks)*int64(clusters))
		owners := func() []any {
			return []any{c.In[at.Queue], c.In[at.Keys], c.In[count], c.In[at.Pointer], cuda.Optional(c, at.Cols),
				c.In[at.Keys].Shape[0], n, clusters}
		}
		g := cuda.Grid{X: chunks, Threads: chunk}
		return steps(
			launch{cuda.Load(c, membersSource, "count_members"), g, func() []any {
				return append([]any{places}, owners()...)
			}},
			launch{cuda.Load(c, membersSource, "start_members"), cuda.Grid{X: 1, Threads: 1024}, func() []any {
				return []any{c.Out, places, chunks, clusters}
			}},
			launch{cuda.Load(c, membersSource, "list_members"), g, func() []any {
				return append([]any{cuda.At(c.Out) + cuda.Pointer(4*(clusters+1)), places}, owners()...)
			}},
		)
	})
}

// IDColumns links columns by id.
func IDColumns() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, n, cols := c.In[0].Shape[0], c.In[1].Shape[0], -1
		if len(c.In) == 3 {
			cols = 2
		}
		next := func() cuda.Pointer { return cuda.At(c.Out) + cuda.Pointer(4*rows) }
		return steps(
			launch{cuda.Load(c, membersSource, "clear_next"), grid(cuda.Blocks(n, threads)), func() []any {
				return []any{next(), n}
			}},
			launch{cuda.Load(c, membersSource, "link_columns"), cuda.Grid{X: rows, Threads: 1024}, func() []any {
				return []any{c.Out, next(), c.In[0], c.In[1], cuda.Optional(c, cols), n}
			}},
		)
	})
}

// Geodesic are scores along a graph.
type Geodesic struct {
	Space                        space.Space
	SameCluster, DirectPositives bool
	Limit                        float32
	Pool                         pool.Operands
	Nearest, Positives           int // operands, -1: none
}

// Operands of Geodesic, as its op has them.
const (
	geoF = iota
	geoDistances
	geoOwner
	geoReach
	geoKeyOwner
	geoKeyReach
	geoCount
	geoMembers
)

// kernel loads a kernel of the scores.
func (x Geodesic) kernel(c *exec.DeviceCall, name string) *cuda.Kernel {
	positives := 0
	switch {
	case x.Positives >= 0:
		positives = 2
	case x.DirectPositives:
		positives = 1
	}
	return cuda.Load(c, scoresSource, name, spaceOf(x.Space), cuda.Is("SAME", x.SameCluster),
		cuda.Value("POSITIVES", positives), cuda.Is("ROUNDED", c.BF16))
}

// arguments are the parameters of a kernel of the scores, these and then the graph.
func (x Geodesic) arguments(c *exec.DeviceCall, own ...any) func() []any {
	return func() []any {
		f, queue := c.In[geoF].Shape, c.In[x.Pool.Queue].Shape
		return append(own[:len(own):len(own)], c.In[geoF], c.In[geoDistances], c.In[geoOwner], c.In[geoReach],
			c.In[geoKeyOwner], c.In[geoKeyReach],
			c.In[geoCount], c.In[geoMembers], c.In[x.Pool.Keys], c.In[x.Pool.Queue], c.In[x.Pool.Pointer],
			cuda.Optional(c, x.Pool.Cols),
			cuda.Optional(c, x.Nearest), cuda.Optional(c, x.Positives),
			f[0], c.In[geoDistances].Shape[1], queue[0], c.In[x.Pool.Keys].Shape[0], f[1], x.Space.Groups(), x.Limit)
	}
}

// Forward computes the scores. Whether there is a graph is known on the device alone: kernels for the other case do
// nothing.
func (x Geodesic) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		const pathRows, splits = 8, 4
		rows, n := c.Out.Shape[0], c.Out.Shape[1]
		columns, tiles := cuda.Blocks(n, threads), cuda.Blocks(n, tile)
		list := []launch{
			{x.kernel(c, "plain_scores"), grid(cuda.Blocks(rows, tile) * tiles), x.arguments(c, c.Out, tiles)},
			{x.kernel(c, "path_scores"), grid(cuda.Blocks(rows, pathRows) * columns), x.arguments(c, c.Out, columns)},
		}
		if x.SameCluster || x.DirectPositives {
			list = append(list, launch{x.kernel(c, "direct_scores"), grid(rows * splits),
				x.arguments(c, c.Out, splits)})
		}
		return steps(list...)
	})
}

// Backward computes the gradients of distances and features.
func (x Geodesic) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, width, n := c.In[geoF].Shape[0], c.In[geoF].Shape[1], c.In[x.Pool.Queue].Shape[0]
		words := 1
		if x.Positives >= 0 {
			words = cuda.Blocks(n, 32)
		}
		taken := cuda.Scratch(c, 4*int64(rows)*int64(words))
		w := 16
		for w > 1 && 4*(w+1)*width > 96<<10 { // of shared memory
			w /= 2
		}
		direct := cuda.Grid{X: rows, Threads: 32 * w, Shared: 4 * (w + 1) * width}
		paths := grid(cuda.Blocks(rows*c.Out.Shape[1], warps))
		arguments := func(out exec.Operand) func() []any {
			return func() []any { return x.arguments(c, out, taken, words, c.In[len(c.In)-1])() }
		}
		return steps(
			launch{x.kernel(c, "direct_gradient"), direct, arguments(c.Aux[0])},
			launch{x.kernel(c, "path_gradient"), paths, arguments(c.Out)},
		)
	})
}
