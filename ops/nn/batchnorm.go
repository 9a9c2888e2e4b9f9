package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
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
	// Lengths (R/Len) int32 says how many of every Len rows count. Rows behind a length take no part: they are not
	// read, are 0 in the result and have no gradient. nil: all rows count.
	Lengths *gorgonia.Node
	Len     int
	Eps     float32
	// Add (R, D), if any, is added to the result, and ReLU takes the positive part of the sum: what follows a batch
	// norm in a residual network, in the same pass. Add does not go with Lengths.
	Add  *gorgonia.Node
	ReLU bool
	// Group is the processes whose rows are normalised together; nil: this one alone. Means, variances and the sums of
	// the backward pass are exchanged then, and the gradients of Gamma and Beta are those of this process's rows.
	Group parallel.Group
}

// BatchNorm normalises each channel over the rows of a batch (Ioffe and Szegedy 2015, algorithm 1; PyTorch's
// nn.BatchNorm1d),
//
//	y = gamma (x - mean) / sqrt(var + eps) + beta
//
// and max(y + Add, 0) where the arguments say so (its gradient at 0 is 0),
// with the mean and the variance of the rows that count, divided by their number n. Sums are made in float64, of
// differences from a first row that are rounded to float32, and parts of them by row, whose number the shape fixes.
// mean and variance (D) are what running statistics move to: the variance is divided by n-1. Both are nil where the
// arguments have them. Fewer than 2 rows have no variance, which is an error of the run.
func BatchNorm(a BatchNormArgs) (y, mean, variance *gorgonia.Node) {
	b := &batchNorm{eps: a.Eps, given: a.Mean != nil, padded: a.Lengths != nil, added: a.Add != nil, relu: a.ReLU}
	if a.Group != nil && a.Group.Size() > 1 && !b.given {
		b.group = a.Group
	}
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
	group  parallel.Group // of whose rows the statistics are; nil: of one process
}

// residual is the place of the operand that is added.
func (b *batchNorm) residual() int {
	if b.given {
		return 5
	}
	return 3
}

// onCUDA is a step for the CUDA device: what is summed over processes is the host's.
func (b *batchNorm) onCUDA(step func(oncuda.BatchNorm) map[string]exec.DeviceStep) map[string]exec.DeviceStep {
	if b.group != nil {
		return nil
	}
	add := -1
	if b.added {
		add = b.residual()
	}
	return step(oncuda.BatchNorm{Given: b.given, ReLU: b.relu, Add: add, Padded: b.padded, Len: b.l, Eps: b.eps})
}

// Auxiliary results of the forward pass.
const (
	batchMean     = iota
	batchRstd     // 1/sqrt(var+eps)
	batchVariance // divided by n-1; of given ones unused
)

func (b *batchNorm) args() string {
	args := fmt.Sprintf("eps=%g given=%t padded=%t l=%d added=%t relu=%t", b.eps, b.given, b.padded, b.l, b.added,
		b.relu)
	if b.group != nil {
		args += fmt.Sprintf(" ranks=%d", b.group.Size())
	}
	return args
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
			errs := []error{op.WantVector(in[1], "gamma", d), op.WantVector(in[2], "beta", d),
				op.Need(b.eps >= 0, "eps must not be negative (got %g)", b.eps)}
			if b.given {
				errs = append(errs, op.WantVector(in[3], "mean", d), op.WantVector(in[4], "variance", d))
			}
			if b.added {
				errs = append(errs, op.WantShape(in, b.residual(), "what is added", in[0]...),
					op.Need(!b.padded, "nothing can be added to rows with lengths"))
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
		Scratch: func(in []tensor.Shape, _ int) int { return partScratch(in[0]) + in[0][1] },
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, sums := b.rowsOf(c, 0), newPartSums(c, 0)
			d := rows.d
			ranks := newRankSums(b.group, d)
			columns := vector.Columns{Scale: c.Scratch[len(c.Scratch)-d:], ReLU: b.relu}
			measure := func(_, lo, hi int) {
				for p := lo; p < hi; p++ {
					sum, square := sums.begin(p)
					if rows.n == 0 { // other ranks have some
						continue
					}
					first := c.In[0].F32[rows.first()*d:][:d]
					rows.each(sums.from(p), sums.from(p+1), func(lo, hi int) {
						vector.ColumnMoments(sum, square, c.In[0].F32[lo*d:hi*d], first)
					})
				}
			}
			normalize := func(_, lo, hi int) {
				rows.each(lo, hi, func(lo, hi int) {
					var add []float32
					if b.added {
						add = c.In[b.residual()].F32[lo*d : hi*d]
					}
					columns.Apply(c.Out.F32[lo*d:hi*d], c.In[0].F32[lo*d:hi*d], add)
				})
				rows.clear(c.Out.F32, lo, hi)
			}
			return func() error {
				if err := rows.count("batch norm"); err != nil {
					return err
				}
				switch {
				case b.given:
					b.take(c)
				case b.group != nil:
					c.Engine.For(sums.parts, 1, measure)
					if err := b.statisticsOfRanks(c, rows, sums, ranks); err != nil {
						return err
					}
				default:
					if rows.n < 2 {
						return fmt.Errorf(
							"ops: batch norm: %d rows of the batch count: the variance of a batch needs 2, take a larger one", rows.n)
					}
					c.Engine.For(sums.parts, 1, measure)
					b.statistics(c, rows, sums)
				}
				columns.Mean, columns.Shift = c.Aux[batchMean].F32, c.In[2].F32
				vector.Mul(columns.Scale, c.In[1].F32, c.Aux[batchRstd].F32)
				c.Engine.For(rows.rows, op.RowGrain(d), normalize)
				return nil
			}, nil
		},
		On: b.onCUDA(oncuda.BatchNorm.Step),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			grads := make(gorgonia.Nodes, n)
			gated := *b
			if b.added {
				if b.relu {
					dy = op.Apply(relu.backward(), out, dy)
				}
				grads[b.residual()] = dy
				gated.relu = false
			}
			operands := gorgonia.Nodes{out, in[0], in[1], in[2], dy}
			if b.padded {
				operands = append(operands, in[n-1])
			}
			dx := op.Apply(gated.backward(len(operands)), operands...)
			d := in[1].Shape()
			grads[0], grads[1], grads[2] = dx, op.Take(dx, 0, d), op.Take(dx, 1, d)
			return grads
		},
	}
}

// statistics sets those of the batch. With the first row f that counts, and S and Q the sums of x - f and of its
// square,
//
//	mean = f + S/n, var = (Q - S^2/n) / n
//
// Nothing is lost in the difference: f is one of the values, so that (mean - f)^2 is at most n var.
func (b *batchNorm) statistics(c *exec.Call, rows *countedRows, sums *partSums) {
	sum, square := sums.total()
	first, n := c.In[0].F32[rows.first()*rows.d:], float64(rows.n)
	mean, rstd, variance := c.Aux[batchMean].F32, c.Aux[batchRstd].F32, c.Aux[batchVariance].F32
	for j := range mean {
		away := sum[j] / n
		squares := max(square[j]-sum[j]*away, 0)
		mean[j] = float32(float64(first[j]) + away)
		rstd[j] = float32(1 / math.Sqrt(squares/n+float64(b.eps)))
		variance[j] = float32(squares / (n - 1))
	}
}

// statisticsOfRanks sets those of the rows of all ranks. With the number n, the mean m and the sum M of (x - m)^2 of
// each rank,
//
//	mean = sum n m / N, var = (sum M + n (m - mean)^2) / N
func (b *batchNorm) statisticsOfRanks(c *exec.Call, rows *countedRows, sums *partSums, ranks *rankSums) error {
	sum, square := sums.total()
	n := float64(rows.n)
	for j := range ranks.sum {
		ranks.sum[j], ranks.more[j] = 0, 0
		if rows.n > 0 {
			away := sum[j] / n
			ranks.sum[j] = float64(c.In[0].F32[rows.first()*rows.d+j]) + away
			ranks.more[j] = max(square[j]-sum[j]*away, 0)
		}
	}
	if err := ranks.exchange(rows.n); err != nil {
		return err
	}
	if ranks.n < 2 {
		return fmt.Errorf("ops: batch norm: %d rows of the batches of all processes count: the variance of a batch needs 2, take a larger one", int(ranks.n))
	}
	mean, rstd, variance := c.Aux[batchMean].F32, c.Aux[batchRstd].F32, c.Aux[batchVariance].F32
	for j := range mean {
		m, squares := 0., 0.
		ranks.each(j, func(n, of, _ float64) { m += n * of / ranks.n })
		ranks.each(j, func(n, of, more float64) { squares += more + n*(of-m)*(of-m) })
		mean[j] = float32(m)
		rstd[j] = float32(1 / math.Sqrt(squares/ranks.n+float64(b.eps)))
		variance[j] = float32(squares / (ranks.n - 1))
	}
	return nil
}

// take takes the statistics from the operands.
func (b *batchNorm) take(c *exec.Call) {
	copy(c.Aux[batchMean].F32, c.In[3].F32)
	copy(c.Aux[batchVariance].F32, c.In[4].F32)
	for j, v := range c.In[4].F32 {
		c.Aux[batchRstd].F32[j] = float32(1 / math.Sqrt(float64(v)+float64(b.eps)))
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
