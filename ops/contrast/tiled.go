package contrast

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Tiled returns the scalar contrast of features x (B, C) with features y (N, C), whose logits are their products
// s = x y^T, without memory for s (B, N). labels (B) int32 is the right column of each row:
//
//	1/B sum_i (log sum_j exp(s_ij) - s_i,labels(i))
//
// With both, N is B, every column is the right one of one row, and the result is the mean of that and of the same over
// the columns: CrossEntropy of s and of its transpose.
//
// Logits are made in tiles, whose rows and columns keep a running maximum and sum of exponentials (Milakov and
// Gimelshein 2018, Online normalizer calculation for softmax); the backward pass makes each tile again (FlashAttention,
// Dao et al. 2022; for contrast Inf-CL, Cheng et al. 2024). So memory grows with B + N, for 4 products of B N C terms
// instead of 3. Gradients go to x and y.
func Tiled(x, y, labels *gorgonia.Node, both bool) *gorgonia.Node {
	t := tiled{both}
	return op.Apply(t.forward(), x, y, labels)
}

// tiled describes the op.
type tiled struct{ both bool }

// Sizes of a tile, and of the columns that a thread looks at together.
const (
	tileRows  = 512
	tileCols  = 2048
	tileStrip = 256
)

func (t tiled) args() string { return fmt.Sprintf("both=%t", t.both) }

func (t tiled) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, y := in[0], in[1]
	err := op.Need(len(x) == 2 && len(y) == 2 && x[1] == y[1], "want x (B, C) and y (N, C)")
	if err == nil && t.both {
		err = op.Need(x[0] == y[0], "want as many columns as rows (got %d and %d)", y[0], x[0])
	}
	if err == nil {
		err = op.WantShape(in, 2, "labels", x[0])
	}
	return tensor.ScalarShape(), err
}

// Auxiliary results of the forward op.
const (
	tiledRows = iota // (B) log-sum-exp of each row
	tiledCols        // (N) of each column, with both
)

// scratch is a tile, and for each thread a row of one.
func (t tiled) scratch(_ []tensor.Shape, threads int) int {
	return tileRows*tileCols + threads*tileCols
}

// run is what a call has of one tile.
type run struct {
	c       *exec.Call
	product *gemm.Product // s = x y^T of a tile
	tile    []float32     // (tileRows, tileCols)
	rooms   []float32     // (threads, tileCols)

	row, rows, col, cols int // of the tile
}

func newRun(c *exec.Call) *run {
	p := op.Product(c, false, true)
	p.K, p.LDC = c.In[0].Dim(1), tileCols
	return &run{c: c, product: p, tile: c.Scratch[:tileRows*tileCols], rooms: c.Scratch[tileRows*tileCols:]}
}

// room is memory of a thread.
func (r *run) room(worker int) []float32 { return r.rooms[worker*tileCols:][:tileCols] }

// each makes the logits of one tile after the other.
func (r *run) each(do func()) {
	b, n, width := r.c.In[0].Dim(0), r.c.In[1].Dim(0), r.c.In[0].Dim(1)
	p := r.product
	for r.row = 0; r.row < b; r.row += tileRows {
		for r.col = 0; r.col < n; r.col += tileCols {
			r.rows, r.cols = min(tileRows, b-r.row), min(tileCols, n-r.col)
			p.M, p.N = r.rows, r.cols
			p.A, p.B, p.C = op.Matrix(r.c, 0, r.row*width, width), op.Matrix(r.c, 1, r.col*width, width), r.tile
			r.c.Engine.Multiply(p)
			do()
		}
	}
}

// of is row i of the tile.
func (r *run) of(i int) []float32 { return r.tile[i*tileCols:][:r.cols] }

// right calls f with the place of the right column of row i of the tile, where that is in it.
func (r *run) right(i int, f func(j int)) {
	if j := int(r.c.In[2].I32[r.row+i]) - r.col; j >= 0 && j < r.cols {
		f(j)
	}
}

// check looks at the labels.
func (t tiled) check(c *exec.Call) error {
	n := int32(c.In[1].Dim(0))
	for i, l := range c.In[2].I32 {
		if l < 0 || l >= n {
			return fmt.Errorf("ops: tiled contrast: label %d of row %d: want 0 to %d", l, i, n-1)
		}
	}
	return nil
}

// sums are running sums of exponentials of rows, or of columns: sum * exp(shift).
type sums struct {
	shift []float32
	sum   []float64
}

func newSums(n int) sums { return sums{make([]float32, n), make([]float64, n)} }

func (s sums) reset() {
	vector.Fill(s.shift, minusInf)
	clear(s.sum)
}

// add adds sum * exp(shift) at i.
func (s sums) add(i int, shift float32, sum float64) {
	switch old := s.shift[i]; {
	case shift > old:
		s.sum[i] = s.sum[i]*math.Exp(float64(old-shift)) + sum
		s.shift[i] = shift
	case shift != minusInf:
		s.sum[i] += sum * math.Exp(float64(shift-old))
	}
}

// logs writes the logarithms to dst and returns their sum.
func (s sums) logs(dst []float32) (total float64) {
	for i, v := range s.sum {
		l := float64(s.shift[i]) + math.Log(v)
		dst[i] = float32(l)
		total += l
	}
	return total
}

// forward is the op of the loss.
func (t tiled) forward() *op.Op {
	o := &op.Op{Kind: "tiled contrast", Args: t.args(), Shape: t.shape, Scratch: t.scratch,
		Diff: []bool{true, true, false}, FLOPs: tiledFLOPs(1)}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		a := []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}}
		if t.both {
			a = append(a, exec.AuxSpec{Shape: tensor.Shape{in[1][0]}})
		}
		return a
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, n := c.In[0].Dim(0), c.In[1].Dim(0)
		r, rows, right := newRun(c), newSums(b), make([]float32, b)
		var cols sums
		if t.both {
			cols = newSums(n)
		}
		byRow := func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				s := r.of(i)
				shift := vector.Max(s)
				rows.add(r.row+i, shift, float64(vector.SumExp(s, shift)))
				r.right(i, func(j int) { right[r.row+i] = s[j] })
			}
		}
		at := make([]int32, tileStrip*c.Engine.Threads())
		byColumn := func(worker, lo, hi int) {
			for k := lo; k < hi; k++ {
				from := k * tileStrip
				r.columns(cols, from, min(tileStrip, r.cols-from), r.room(worker), at[worker*tileStrip:])
			}
		}
		look := func() {
			c.Engine.For(r.rows, 8, byRow)
			if t.both {
				c.Engine.For((r.cols+tileStrip-1)/tileStrip, 1, byColumn)
			}
		}
		return func() error {
			if err := t.check(c); err != nil {
				return err
			}
			rows.reset()
			cols.reset()
			r.each(look)
			total := rows.logs(c.Aux[tiledRows].F32)
			var positive float64
			for _, v := range right {
				positive += float64(v)
			}
			if t.both {
				total = (total + cols.logs(c.Aux[tiledCols].F32)) / 2
			}
			c.Out.F32[0] = float32((total - positive) / float64(b))
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		dx := op.Apply(t.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
		return gorgonia.Nodes{dx, op.Take(dx, 0, in[1].Shape()), nil}
	}
	return o
}

// columns adds n columns of a tile, from the column from on, to their sums.
func (r *run) columns(to sums, from, n int, room []float32, at []int32) {
	top, sum, e := room[:n], room[tileStrip:][:n], room[2*tileStrip:][:n]
	vector.Fill(top, minusInf)
	for i := range r.rows {
		vector.MaxColumns(top, at[:n], r.of(i)[from:from+n], 0)
	}
	clear(sum)
	for i := range r.rows {
		vector.Sub(e, r.of(i)[from:from+n], top)
		vector.Exp(e, e)
		vector.Add(sum, sum, e)
	}
	for j := range n {
		to.add(r.col+from+j, top[j], float64(sum[j]))
	}
}

// tiledFLOPs are those of some products of all tiles.
func tiledFLOPs(products int64) func(in []tensor.Shape) int64 {
	return func(in []tensor.Shape) int64 {
		return 2 * products * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][0])
	}
}

// backward is the gradient op: operands are the forward's, its output and the gradient g of that. Of a tile of logits s
// it makes
//
//	p_ij = g/B (exp(s_ij - lse_i) - [j = labels(i)])
//
// with both the mean of that and of the same by columns, and adds p y to dx, and p^T x to dy, its auxiliary result.
func (t tiled) backward() *op.Op {
	o := &op.Op{Kind: "tiled contrast dx", Args: t.args(), Scratch: t.scratch, Diff: make([]bool, 5), FLOPs: tiledFLOPs(3)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1].Clone()}} }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r, width := newRun(c), c.In[0].Dim(1)
		dx, dy := op.Product(c, false, false), op.Product(c, true, false)
		dx.N, dx.LDC, dy.N, dy.LDC = width, width, width, width
		lse, a, g := c.InAux[3], float32(0), float32(0) // a: of rows, and with both of columns
		body := func(worker, lo, hi int) {
			e := r.room(worker)[:r.cols]
			for i := lo; i < hi; i++ {
				s := r.of(i)
				if t.both {
					vector.Sub(e, s, lse[tiledCols].F32[r.col:][:r.cols])
					vector.Exp(e, e)
				}
				vector.SoftmaxDiff(s, s, lse[tiledRows].F32[r.row+i], a)
				if t.both {
					vector.Axpy(s, a, e)
				}
				r.right(i, func(j int) { s[j] -= g })
			}
		}
		add := func() {
			c.Engine.For(r.rows, 8, body)
			p := gemm.Matrix{F32: r.tile, LD: tileCols}
			dx.M, dx.K, dx.A, dx.B = r.rows, r.cols, p, op.Matrix(c, 1, r.col*width, width)
			dx.C, dx.Beta = c.Out.F32[r.row*width:], min(1, float32(r.col))
			c.Engine.Multiply(dx)
			dy.M, dy.K, dy.A, dy.B = r.cols, r.rows, p, op.Matrix(c, 0, r.row*width, width)
			dy.C, dy.Beta = c.Aux[0].F32[r.col*width:], min(1, float32(r.row))
			c.Engine.Multiply(dy)
		}
		return func() error {
			g = c.In[4].F32[0] / float32(c.In[0].Dim(0))
			if a = g; t.both {
				a = g / 2
			}
			r.each(add)
			return nil
		}, nil
	}
	return o
}
