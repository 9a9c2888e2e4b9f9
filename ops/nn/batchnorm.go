package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// BatchNormArgs are the operands of BatchNorm.
type BatchNormArgs struct {
	X           *gorgonia.Node // (R, D)
	Gamma, Beta *gorgonia.Node // (D)
	// Mean and Variance (D) are what X is normalised by, as in inference; nil: those of the rows of X.
	Mean, Variance *gorgonia.Node
	// Lengths (R/Len) int32 says how many of every Len rows count. Rows behind a length take no part: they are not read,
	// are 0 in the result and have no gradient. nil: all rows count.
	Lengths *gorgonia.Node
	Len     int
	Eps     float32
	// Add (R, D), if any, is added to the result, and ReLU takes the positive part of the sum: what follows a batch
	// norm in a residual network, in the same pass. Add does not go with Lengths.
	Add  *gorgonia.Node
	ReLU bool
}

// BatchNorm normalises each channel over the rows of a batch (Ioffe and Szegedy 2015, algorithm 1; PyTorch's
// nn.BatchNorm1d),
//
//	y = gamma (x - mean) / sqrt(var + eps) + beta
//
// and max(y + Add, 0) where the arguments say so (its gradient at 0 is 0),
// with the mean and the variance of the rows that count, divided by their number n; sums are made in float64. mean and
// variance (D) are what running statistics move to: the variance is divided by n-1. Both are nil where the arguments have
// them. Fewer than 2 rows have no variance, which is an error of the run.
func BatchNorm(a BatchNormArgs) (y, mean, variance *gorgonia.Node) {
	b := &batchNorm{eps: a.Eps, given: a.Mean != nil, padded: a.Lengths != nil, added: a.Add != nil, relu: a.ReLU}
	in := gorgonia.Nodes{a.X, a.Gamma, a.Beta}
	if b.given {
		in = append(in, a.Mean, a.Variance)
	}
	if b.added {
		in = append(in, a.Add)
	}
	if b.padded {
		b.l = a.Len
		in = append(in, a.Lengths)
	}
	y = op.Apply(b.forward(len(in)), in...)
	if b.given {
		return y, nil, nil
	}
	d := a.Gamma.Shape()
	return y, op.Take(y, batchMean, d), op.Take(y, batchVariance, d)
}

// batchNorm is what tells one batch norm from another.
type batchNorm struct {
	l      int // rows of a sequence, where they have lengths
	padded bool
	given  bool // mean and variance are operands
	added  bool // an operand is added to the result
	relu   bool
	eps    float32
}

// residual is the place of the operand that is added.
func (b *batchNorm) residual() int {
	if b.given {
		return 5
	}
	return 3
}

// Auxiliary results of the forward pass.
const (
	batchMean     = iota
	batchRstd     // 1/sqrt(var+eps)
	batchVariance // divided by n-1; of given ones unused
)

func (b *batchNorm) args() string {
	return fmt.Sprintf("eps=%g given=%t padded=%t l=%d added=%t relu=%t", b.eps, b.given, b.padded, b.l, b.added, b.relu)
}

// forward is the op of n operands: x, gamma, beta, mean and variance where they are given, what is added, and lengths.
func (b *batchNorm) forward(n int) *op.Op {
	diff := make([]bool, n)
	diff[0], diff[1], diff[2] = true, true, true
	inPlace := []int{0}
	if b.added {
		diff[b.residual()], inPlace = true, append(inPlace, b.residual())
	}
	return &op.Op{
		Kind: "batch norm", Args: b.args(), Diff: diff, InPlace: inPlace,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			d := in[0][1]
			errs := []error{op.WantVector(in[1], "gamma", d), op.WantVector(in[2], "beta", d), op.Need(b.eps >= 0, "eps must not be negative (got %g)", b.eps)}
			if b.given {
				errs = append(errs, op.WantVector(in[3], "mean", d), op.WantVector(in[4], "variance", d))
			}
			if b.added {
				errs = append(errs, op.WantShape(in, b.residual(), "what is added", in[0]...), op.Need(!b.padded, "nothing can be added to rows with lengths"))
			}
			if b.padded {
				_, err := pooledShape(in[0], in[n-1], b.l)
				errs = append(errs, err)
			}
			return in[0].Clone(), op.All(errs...)
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[1]}, {Shape: in[1]}, {Shape: in[1]}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows := b.rowsOf(c, 0)
			sums := make([]float64, rows.d)
			body := func(_, lo, hi int) {
				if b.given {
					b.take(c, lo, hi)
				} else {
					b.measure(c, rows, sums, lo, hi)
				}
				b.normalize(c, rows, lo, hi)
			}
			return func() error {
				if err := rows.count("batch norm"); err != nil {
					return err
				}
				if !b.given && rows.n < 2 {
					return fmt.Errorf("ops: batch norm: %d rows of the batch count: the variance of a batch needs 2, take a larger one", rows.n)
				}
				c.Engine.For(rows.d, columnGrain(rows.rows), body)
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			grads := make(gorgonia.Nodes, n)
			if b.relu {
				dy = op.Apply(reluGrad(), out, dy)
			}
			if b.added {
				grads[b.residual()] = dy
			}
			operands := gorgonia.Nodes{out, in[0], in[1], dy}
			if b.padded {
				operands = append(operands, in[n-1])
			}
			dx := op.Apply(b.backward(len(operands)), operands...)
			d := in[1].Shape()
			grads[0], grads[1], grads[2] = dx, op.Take(dx, 0, d), op.Take(dx, 1, d)
			return grads
		},
	}
}

// measure computes the statistics of columns [lo, hi).
func (b *batchNorm) measure(c *exec.Call, rows *countedRows, sums []float64, lo, hi int) {
	mean, rstd, variance := c.Aux[batchMean].F32[lo:hi], c.Aux[batchRstd].F32[lo:hi], c.Aux[batchVariance].F32[lo:hi]
	x, n := c.In[0].F32, float64(rows.n)
	sum := sums[lo:hi]
	clear(sum)
	for s := range rows.counts {
		for r := s * rows.l; r < rows.end(s); r++ {
			for j, v := range x[r*rows.d+lo : r*rows.d+hi] {
				sum[j] += float64(v)
			}
		}
	}
	for j := range sum {
		mean[j] = float32(sum[j] / n)
		sum[j] = 0
	}
	for s := range rows.counts {
		for r := s * rows.l; r < rows.end(s); r++ {
			for j, v := range x[r*rows.d+lo : r*rows.d+hi] {
				from := float64(v) - float64(mean[j])
				sum[j] += from * from
			}
		}
	}
	for j := range sum {
		rstd[j] = float32(1 / math.Sqrt(sum[j]/n+float64(b.eps)))
		variance[j] = float32(sum[j] / (n - 1))
	}
}

// take takes the statistics of columns [lo, hi) from the operands.
func (b *batchNorm) take(c *exec.Call, lo, hi int) {
	copy(c.Aux[batchMean].F32[lo:hi], c.In[3].F32[lo:hi])
	copy(c.Aux[batchVariance].F32[lo:hi], c.In[4].F32[lo:hi])
	for j := lo; j < hi; j++ {
		c.Aux[batchRstd].F32[j] = float32(1 / math.Sqrt(float64(c.In[4].F32[j])+float64(b.eps)))
	}
}

// normalize writes columns [lo, hi) of the result.
func (b *batchNorm) normalize(c *exec.Call, rows *countedRows, lo, hi int) {
	mean, rstd, gamma, beta := c.Aux[batchMean].F32[lo:hi], c.Aux[batchRstd].F32[lo:hi], c.In[1].F32[lo:hi], c.In[2].F32[lo:hi]
	for s := range rows.counts {
		for r := s * rows.l; r < rows.end(s); r++ {
			out := c.Out.F32[r*rows.d+lo : r*rows.d+hi]
			for j, v := range c.In[0].F32[r*rows.d+lo : r*rows.d+hi] {
				out[j] = gamma[j]*((v-mean[j])*rstd[j]) + beta[j]
			}
			b.finish(c, r*rows.d, out, lo)
		}
		rows.clear(c.Out.F32, s, lo, hi)
	}
}

// finish does what follows the norm, for the part of a row of the result that begins at column lo.
func (b *batchNorm) finish(c *exec.Call, row int, out []float32, lo int) {
	if b.added {
		vector.Add(out, out, c.In[b.residual()].F32[row+lo:][:len(out)])
	}
	if b.relu {
		for j, v := range out {
			out[j] = max(v, 0)
		}
	}
}

// backward returns dx for the output, whose statistics it reads, x, gamma, dy and lengths; dgamma and dbeta are its
// auxiliary results. With h = (x - mean) rstd,
//
//	dx = gamma rstd (dy - dbeta/n - h dgamma/n), or of given statistics gamma rstd dy
func (b *batchNorm) backward(n int) *op.Op {
	return &op.Op{
		Kind: "batch norm dx", Args: b.args(), Diff: make([]bool, n), InPlace: []int{3},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[1].Clone(), op.Need(in[1].Eq(in[3]), "x and dy must have one shape")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: in[2]}, {Shape: in[2]}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows := b.rowsOf(c, 1)
			sums := make([]float64, 2*rows.d)
			body := func(_, lo, hi int) { b.differentiate(c, rows, sums[:rows.d], sums[rows.d:], lo, hi) }
			return func() error {
				if err := rows.count("batch norm"); err != nil {
					return err
				}
				c.Engine.For(rows.d, columnGrain(rows.rows), body)
				return nil
			}, nil
		},
	}
}

// differentiate writes columns [lo, hi) of the gradients.
func (b *batchNorm) differentiate(c *exec.Call, rows *countedRows, sums, products []float64, lo, hi int) {
	mean, rstd, gamma := c.InAux[0][batchMean].F32[lo:hi], c.InAux[0][batchRstd].F32[lo:hi], c.In[2].F32[lo:hi]
	x, dys := c.In[1].F32, c.In[3].F32
	sum, product := sums[lo:hi], products[lo:hi]
	clear(sum)
	clear(product)
	for s := range rows.counts {
		for r := s * rows.l; r < rows.end(s); r++ {
			row := x[r*rows.d+lo : r*rows.d+hi]
			for j, dy := range dys[r*rows.d+lo : r*rows.d+hi] {
				sum[j] += float64(dy)
				product[j] += float64(dy) * float64((row[j]-mean[j])*rstd[j])
			}
		}
	}
	dgamma, dbeta := c.Aux[0].F32[lo:hi], c.Aux[1].F32[lo:hi]
	for j := range sum {
		dgamma[j], dbeta[j] = float32(product[j]), float32(sum[j])
		sum[j], product[j] = sum[j]/float64(rows.n), product[j]/float64(rows.n)
		if b.given {
			sum[j], product[j] = 0, 0
		}
	}
	for s := range rows.counts {
		for r := s * rows.l; r < rows.end(s); r++ {
			row, dx := x[r*rows.d+lo:r*rows.d+hi], c.Out.F32[r*rows.d+lo:r*rows.d+hi]
			for j, dy := range dys[r*rows.d+lo : r*rows.d+hi] {
				h := (row[j] - mean[j]) * rstd[j]
				dx[j] = gamma[j] * rstd[j] * (dy - float32(sum[j]) - h*float32(product[j]))
			}
		}
		rows.clear(c.Out.F32, s, lo, hi)
	}
}

// rowsOf says which rows of operand x of a call count; lengths are its last operand.
func (b *batchNorm) rowsOf(c *exec.Call, x int) *countedRows {
	rows, d := c.In[x].Dim(0), c.In[x].Dim(1)
	if !b.padded {
		return &countedRows{rows: rows, d: d, l: rows, counts: []int32{int32(rows)}}
	}
	return &countedRows{rows: rows, d: d, l: b.l, counts: make([]int32, rows/b.l), lengths: &c.In[len(c.In)-1]}
}

// countedRows are the rows of x (rows, d) that count: the first so many of every l.
type countedRows struct {
	rows, d, l int
	lengths    *exec.Array // nil: all count
	counts     []int32
	n          int // their sum
}

// count reads the lengths.
func (x *countedRows) count(kind string) error {
	if x.lengths != nil {
		if err := checkLengths(kind, x.lengths.I32, x.l); err != nil {
			return err
		}
		copy(x.counts, x.lengths.I32)
	}
	x.n = 0
	for _, n := range x.counts {
		x.n += int(n)
	}
	return nil
}

// end is the row behind the last of sequence s that counts.
func (x *countedRows) end(s int) int { return s*x.l + int(x.counts[s]) }

// clear sets columns [lo, hi) of the rows of sequence s that do not count to 0.
func (x *countedRows) clear(out []float32, s, lo, hi int) {
	for r := x.end(s); r < (s+1)*x.l; r++ {
		clear(out[r*x.d+lo : r*x.d+hi])
	}
}

// columnGrain is how many columns of so many rows are worth a thread: at least a cache line.
func columnGrain(rows int) int { return max(16, op.RowGrain(rows)) }
