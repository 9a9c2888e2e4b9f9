package contrast

import (
	"errors"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SigmoidArgs are the operands of SigmoidContrast: scores s of B rows and N columns, what
// makes logits of them, and which pairs are positive. Exactly one kind of positives must
// be set: Labels, or RowIDs with ColIDs.
type SigmoidArgs struct {
	// Scores is s (B, N), finite.
	Scores *gorgonia.Node
	// LogScale is the scalar t' = log t, Bias the scalar b; the paper starts with
	// log 10 and -10.
	LogScale, Bias *gorgonia.Node
	// Labels (B) int32 is the positive column of each row; a negative one leaves the row
	// out.
	Labels *gorgonia.Node
	// RowIDs (B) and ColIDs (N), int32, make every column with the row's id a positive. A
	// row with a negative id is left out; a row without a positive is not, it has
	// negatives alone. A column with a negative id is nobody's positive.
	RowIDs, ColIDs *gorgonia.Node
	// Cols is a scalar int32 with the number of columns that exist, the first ones, or nil
	// for all.
	Cols *gorgonia.Node
}

// SigmoidContrast returns the scalar
//
//	-1/B sum_i sum_j log sigmoid(z_ij (t s_ij + b)),  t = exp(t')
//
// with z_ij = 1 for positive pairs and -1 for all others, over the B rows that are not left
// out (Zhai et al. 2023, Sigmoid Loss for Language Image Pre-Training, section 3.2 and
// algorithm 1); 0 if all are. Each pair is judged by itself: no row or column is
// normalised. Gradients go to Scores, LogScale and Bias. Logits are never kept: the
// backward pass makes them again and may write over the scores.
func SigmoidContrast(a SigmoidArgs) *gorgonia.Node {
	in := op.Operands{a.Scores, a.LogScale, a.Bias}
	x := &sigmoidContrast{labels: in.Add(a.Labels), rowIDs: in.Add(a.RowIDs), colIDs: in.Add(a.ColIDs),
		cols: in.Add(a.Cols)}
	x.operands = len(in)
	if err := x.check(); err != nil {
		panic(&op.BuildError{Op: "sigmoid contrast", Err: err})
	}
	return op.Apply(x.forward(), in...)
}

// sigmoidContrast describes the op: the positions of its further operands, -1 for those
// that it does not have.
type sigmoidContrast struct {
	labels, rowIDs, colIDs, cols int
	operands                     int
}

// onCUDA is the loss as its steps for the CUDA device know it.
func (x *sigmoidContrast) onCUDA() oncuda.SigmoidContrast {
	return oncuda.SigmoidContrast{Positives: max(x.labels, x.rowIDs), ColIDs: x.colIDs, Cols: x.cols}
}

func (x *sigmoidContrast) check() error {
	switch {
	case (x.rowIDs >= 0) != (x.colIDs >= 0):
		return errors.New("row and column ids must be given together")
	case (x.labels >= 0) == (x.rowIDs >= 0):
		return errors.New("want either labels or ids")
	}
	return nil
}

func (x *sigmoidContrast) args() string {
	return fmt.Sprintf("labels=%d rows=%d cols=%d count=%d", x.labels, x.rowIDs, x.colIDs, x.cols)
}

func (x *sigmoidContrast) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2, "want scores (B, N)"); err != nil {
		return nil, err
	}
	rows, cols := in[0][0], in[0][1]
	return tensor.ScalarShape(), op.All(
		op.WantShape(in, 1, "log scale"),
		op.WantShape(in, 2, "bias"),
		op.WantShape(in, x.labels, "labels", rows),
		op.WantShape(in, x.rowIDs, "row ids", rows),
		op.WantShape(in, x.colIDs, "column ids", cols),
		op.WantShape(in, x.cols, "cols"),
	)
}

const (
	// sigmoidBlock is the number of columns of a partial sum: fixed, so that the result
	// does not depend on the number of threads.
	sigmoidBlock = 4096
	// sigmoidChunk is the number of columns whose logits a thread holds at a time. A
	// product of as many factors up to 2 is a float64, see softplus.
	sigmoidChunk = 512
)

func sigmoidBlocks(cols int) int { return (cols + sigmoidBlock - 1) / sigmoidBlock }

// sigmoidScratch is the memory of the threads: two chunks each.
func sigmoidScratch(_ []tensor.Shape, threads int) int { return 2 * sigmoidChunk * threads }

// forward is the op of the loss.
func (x *sigmoidContrast) forward() *op.Op {
	o := &op.Op{Kind: "sigmoid contrast", Args: x.args(), Shape: x.shape, Scratch: sigmoidScratch,
		Diff: make([]bool, x.operands), On: x.onCUDA().Forward()}
	o.Diff[0], o.Diff[1], o.Diff[2] = true, true, true
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, blocks, logits := 0, 0, logitsOf{}
		sums := make([]float64, rows*sigmoidBlocks(total))
		body := func(worker, lo, hi int) {
			l, e := sigmoidBuffers(c, worker)
			for i := lo; i < hi; i++ {
				r, start := i/blocks, i%blocks*sigmoidBlock
				stop := min(start+sigmoidBlock, cols)
				if x.own(c, r) < 0 {
					stop = start
				}
				sums[i] = 0
				for from := start; from < stop; from += sigmoidChunk {
					n := min(sigmoidChunk, stop-from)
					logits.chunk(l[:n], e[:n], c.In[0].F32[r*total+from:])
					sums[i] += softplus(l[:n], e[:n])
					x.positives(c, r, from, n, func(j int) { sums[i] -= float64(l[j]) })
				}
			}
		}
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			blocks, logits = sigmoidBlocks(cols), x.logits(c)
			c.Engine.For(rows*blocks, 2, body)
			var sum float64
			for _, v := range sums[:rows*blocks] {
				sum += v
			}
			c.Out.F32[0] = float32(sum / float64(max(1, x.kept(c))))
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		ds := op.Apply(x.backward(), append(append(gorgonia.Nodes{}, in...), dy)...)
		grads := make(gorgonia.Nodes, x.operands)
		grads[0], grads[1], grads[2] = ds, op.Take(ds, sigmoidScale, tensor.ScalarShape()),
			op.Take(ds, sigmoidBias, tensor.ScalarShape())
		return grads
	}
	return o
}

// sigmoidBuffers returns the two chunks of a thread.
func sigmoidBuffers(c *exec.Call, worker int) (l, e []float32) {
	b := c.Scratch[2*sigmoidChunk*worker:][:2*sigmoidChunk]
	return b[:sigmoidChunk], b[sigmoidChunk:]
}

// logitsOf makes logits of scores.
type logitsOf struct{ scale, bias float32 }

func (x *sigmoidContrast) logits(c *exec.Call) logitsOf {
	return logitsOf{float32(math.Exp(float64(c.In[1].F32[0]))), c.In[2].F32[0]}
}

// chunk sets l to the logits of scores s and e to exp(-|l|), which is at most 1.
func (t logitsOf) chunk(l, e, s []float32) {
	vector.Fill(l, t.bias)
	vector.Axpy(l, t.scale, s[:len(l)])
	for j, v := range l {
		e[j] = -float32(math.Abs(float64(v)))
	}
	vector.Exp(e, e)
}

// softplus returns sum_j log(1 + exp(l_j)) = sum_j max(l_j, 0) + log(1 + e_j) for a chunk:
// its losses if no pair is positive. A positive one has the loss log(1 + exp(-l)), which
// is l less. In place of each logarithm there is one of a product, whose factors are at
// most 2.
func softplus(l, e []float32) float64 {
	var sum0, sum1, sum2, sum3 float64
	p0, p1, p2, p3 := 1., 1., 1., 1.
	for len(l) >= 4 && len(e) >= 4 {
		sum0 += float64(max(l[0], 0))
		sum1 += float64(max(l[1], 0))
		sum2 += float64(max(l[2], 0))
		sum3 += float64(max(l[3], 0))
		p0 *= 1 + float64(e[0])
		p1 *= 1 + float64(e[1])
		p2 *= 1 + float64(e[2])
		p3 *= 1 + float64(e[3])
		l, e = l[4:], e[4:]
	}
	for j, v := range l {
		sum0 += float64(max(v, 0))
		p0 *= 1 + float64(e[j])
	}
	return sum0 + sum1 + (sum2 + sum3) + math.Log(p0*p1*(p2*p3))
}

// positives calls f with each positive of row r among columns [from, from+n), less from.
func (x *sigmoidContrast) positives(c *exec.Call, r, from, n int, f func(j int)) {
	own := x.own(c, r)
	if x.labels >= 0 {
		if j := int(own) - from; j >= 0 && j < n {
			f(j)
		}
		return
	}
	for j, id := range c.In[x.colIDs].I32[from : from+n] {
		if id == own {
			f(j)
		}
	}
}

// own returns the label or the id of row r, negative if it is left out.
func (x *sigmoidContrast) own(c *exec.Call, r int) int32 { return c.In[max(x.labels, x.rowIDs)].I32[r] }

// kept returns the number of rows that are not left out.
func (x *sigmoidContrast) kept(c *exec.Call) (n int) {
	for _, v := range c.In[max(x.labels, x.rowIDs)].I32 {
		if v >= 0 {
			n++
		}
	}
	return n
}

// numCols returns how many columns exist in a run, after a look at the labels.
func (x *sigmoidContrast) numCols(c *exec.Call, total int) (int, error) {
	n := total
	if x.cols >= 0 {
		if n = int(c.In[x.cols].I32[0]); n < 1 || n > total {
			return 0, fmt.Errorf("ops: sigmoid contrast: cols is %d: want [1, %d]", n, total)
		}
	}
	if x.labels >= 0 {
		for r, l := range c.In[x.labels].I32 {
			if int(l) >= n {
				return 0, fmt.Errorf("ops: sigmoid contrast: label %d of row %d: want less than %d columns", l, r, n)
			}
		}
	}
	return n, nil
}
