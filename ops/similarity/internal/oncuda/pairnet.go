package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var pairNetSource = cuda.NewSource(files, "pairnet", "pairnet.cu")

// PairNetValues is what a block of images has at most of hidden units of pairs, and of weights times images; an image
// is one in any case. It fits into the second cache of large devices. A variable for tests.
var PairNetValues = 4 << 20

// pairNetSlices is SLICES of pairnet.cu.
const pairNetSlices = 8

// pairNet is a step of either op on the CUDA device, which works on blocks of images: their layers are one product
//
//	p (n h, m) = scaled (n h, c) y^T,  scaled_ihc = a_hc x_ic
//
// with all texts. Products are in float32 as on the host, or tf32: the gradient jumps where a hidden unit crosses zero,
// so that bfloat16 would move it by more than its own rounding.
type pairNet struct {
	c            *exec.DeviceCall
	n, m, h, dim int
	most         int // images of a block
	room         *cuda.Room

	// In scratch.
	scaled cuda.Pointer // (most, H, C): a_hc x_ic
	hidden cuda.Pointer // (most, H, M)
	t      cuda.Pointer // (H, M), transposed

	transpose func(to, from any, rows, cols int)
	scale     *cuda.Kernel
}

func newPairNet(c *exec.DeviceCall) *pairNet {
	r := &pairNet{c: c, n: c.In[0].Shape[0], m: c.In[1].Shape[0], h: c.In[2].Shape[0], dim: c.In[0].Shape[1],
		room: cuda.NewRoom(c)}
	r.most = min(r.n, max(1, PairNetValues/(r.h*max(r.m, r.dim))))
	r.scaled, r.hidden, r.t = r.floats(r.most*r.h*r.dim), r.floats(r.most*r.h*r.m), r.floats(r.h*r.m)
	r.transpose, r.scale = cuda.Transpose(c, c.Out), r.kernel("scale_weights")
	return r
}

func (r *pairNet) kernel(name string) *cuda.Kernel { return cuda.Load(r.c, pairNetSource, name) }

func (r *pairNet) floats(n int) cuda.Pointer { return r.room.Take(4 * int64(n)) }

// scratch takes what was asked for.
func (r *pairNet) scratch(list ...*cuda.Pointer) {
	base := cuda.Scratch(r.c, r.room.Bytes)
	for _, p := range append(list, &r.scaled, &r.hidden, &r.t) {
		*p += base
	}
}

// run returns the step that works on all blocks: block when the hidden units of images [from, from + n) are made.
func (r *pairNet) run(block func(from, n int)) cuda.Step {
	c := r.c
	return func() {
		r.transpose(r.t, c.In[4], r.m, r.h)
		for from := 0; from < r.n; from += r.most {
			n := min(r.most, r.n-from)
			all := n * r.h * r.dim
			r.scale.Enqueue(cuda.Grid{X: cuda.Blocks(all, 256), Threads: 256}, r.scaled, c.In[2],
				rowsFrom(c.In[0], from),
				r.h, r.dim, int64(all))
			p := cuda.Product{TransB: true, M: n * r.h, N: r.m, K: r.dim}
			cuda.Multiply(c, p, cuda.FloatsAt(r.scaled, r.dim), r.texts(), cuda.FloatsAt(r.hidden, r.m), nil)
			block(from, n)
		}
	}
}

// texts are y.
func (r *pairNet) texts() cuda.Matrix { return cuda.MatrixOf(r.c.In[1], 0, r.dim) }

// rowsFrom is where a row of an operand begins.
func rowsFrom(o exec.Operand, row int) cuda.Pointer {
	return cuda.MatrixOf(o, row*o.Shape[1], 0).At
}

// pairNetColumns is the grid of a kernel whose blocks take 32 columns of a row.
func pairNetColumns(rows, cols int) cuda.Grid {
	return cuda.Grid{X: rows, Y: cuda.Blocks(cols, 32), Threads: 32, ThreadsY: pairNetSlices}
}

// PairNetForward is the step of the scores.
func PairNetForward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r := newPairNet(c)
		score := r.kernel("pair_scores")
		r.scratch()
		return r.run(func(from, n int) {
			score.Enqueue(pairNetColumns(n, r.m), rowsFrom(c.Out, from), r.hidden, rowsFrom(c.In[3], from), r.t,
				c.In[5], r.m, r.h)
		})
	})
}

// PairNetGrad is the step of the gradients. In a block they are, with g (n h, m) that of the hidden units' sums,
//
//	dy (m, c) += g^T scaled,  outer (n h, c) = g y,  da_hc += sum_i outer_ihc x_ic,  dx_ic = sum_h outer_ihc a_hc
//	du_ih = sum_j g_ihj,  dt_jh += sum_i g_ihj
func PairNetGrad() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		r := newPairNet(c)
		slopes, sum := r.kernel("pair_slopes"), r.kernel("sum_products")
		dt, dvs := r.floats(r.h*r.m), r.floats(r.n*r.h) // (H, M), and (N, H) for each image
		r.scratch(&dt, &dvs)
		dText, da, du, dv := c.Aux[0], c.Aux[1], c.Aux[2], c.Aux[4]
		add := func(to any, rows, cols int, args ...any) {
			sum.Enqueue(pairNetColumns(rows, cols), append([]any{to}, args...)...)
		}
		blocks := r.run(func(from, n int) {
			x, more, rows := rowsFrom(c.In[0], from), from > 0, n*r.h
			threads := min(1024, 32*cuda.Blocks(r.m, 256))
			slopes.Enqueue(cuda.Grid{X: rows, Threads: threads}, r.hidden, rowsFrom(du, from),
				dvs+cuda.Pointer(4*from*r.h),
				rowsFrom(c.In[6], from), rowsFrom(c.In[3], from), r.t, c.In[5], r.m, r.h)
			add(dt, r.h, r.m, r.hidden, nil, n, 1, r.h, r.m, more)
			g, scaled := cuda.FloatsAt(r.hidden, r.m), cuda.FloatsAt(r.scaled, r.dim)
			p := cuda.Product{TransA: true, M: r.m, N: r.dim, K: rows}
			if more {
				p.Beta = 1
			}
			cuda.Multiply(c, p, g, scaled, cuda.MatrixOf(dText, 0, r.dim), nil)
			outer := scaled // which nobody reads any more
			cuda.Multiply(c, cuda.Product{M: rows, N: r.dim, K: r.m}, g, r.texts(), outer, nil)
			add(da, r.h, r.dim, outer.At, x, n, 1, r.h, r.dim, more)
			add(rowsFrom(c.Out, from), n, r.dim, outer.At, c.In[2], r.h, r.h, 1, r.dim, false)
		})
		return func() {
			blocks()
			r.transpose(c.Aux[3], dt, r.h, r.m)
			add(dv, 1, r.h, dvs, nil, r.n, 1, 1, r.h, false)
		}
	})
}
