package contrast

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// pairLoss describes a loss that is a sum over the rows of scores s (B, B), in which row i and
// column i are a pair. Operands are s, then what it reads besides, of which ids (B) int32 say
// which pairs are no negatives of each other: those of one id.
type pairLoss struct {
	kind, args string
	scalar     string // name of operand 1, a scalar; empty: there is none
	ids        int    // operand, -1 for none
	// loss returns that of a row; slope sets the gradient of it, all B values.
	loss  func(r scoreRow) float64
	slope func(r scoreRow, ds []float32)
	// parameters are those of the kernels on a CUDA device, which have the loss's kind as their names, behind the
	// operands.
	parameters []float64
}

// onCUDA is the loss as its steps for the CUDA device know it.
func (l pairLoss) onCUDA() oncuda.PairLoss {
	return oncuda.PairLoss{Kind: l.kind, Scalar: l.scalar != "", IDs: l.ids, Parameters: l.parameters}
}

// scoreRow is row i of scores.
type scoreRow struct {
	c   *exec.Call
	i   int
	s   []float32
	ids []int32 // nil for none
}

// matches says whether column j is no negative of the row: its own pair, or one of its id.
func (r scoreRow) matches(j int) bool { return j == r.i || r.ids != nil && r.ids[j] == r.ids[r.i] }

// hardest returns the first largest negative of a row and its column, -1 without any.
func (r scoreRow) hardest() (n float64, at int) {
	at = -1
	for j, v := range r.s {
		if (at < 0 || float64(v) > n) && !r.matches(j) {
			n, at = float64(v), j
		}
	}
	return n, at
}

// own returns the score of the row's own pair.
func (r scoreRow) own() float64 { return float64(r.s[r.i]) }

// pairLossOf puts the loss of scores with further operands into the graph; ids may be nil.
func pairLossOf(l pairLoss, scores, ids *gorgonia.Node, further ...*gorgonia.Node) *gorgonia.Node {
	in := append(op.Operands{scores}, further...)
	l.ids = in.Add(ids)
	return op.Apply(l.forward(len(in)), in...)
}

func (l pairLoss) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2 && in[0][0] == in[0][1], "want scores (B, B) (got %v)", in[0]); err != nil {
		return nil, err
	}
	scalar := -1
	if l.scalar != "" {
		scalar = 1
	}
	return tensor.ScalarShape(), op.All(op.WantShape(in, scalar, l.scalar), op.WantShape(in, l.ids, "ids", in[0][0]))
}

// row returns row i of a call.
func (l pairLoss) row(c *exec.Call, i int) scoreRow {
	n := c.In[0].Dim(1)
	r := scoreRow{c: c, i: i, s: c.In[0].F32[i*n:][:n]}
	if l.ids >= 0 {
		r.ids = c.In[l.ids].I32
	}
	return r
}

func (l pairLoss) forward(operands int) *op.Op {
	o := &op.Op{Kind: l.kind, Args: l.args + idsArg(l.ids), Diff: make([]bool, operands), Shape: l.shape,
		On: l.onCUDA().Forward()}
	o.Diff[0] = true
	o.Host = func(c *exec.Call) (exec.Step, error) {
		n := c.In[0].Dim(0)
		losses := make([]float64, n)
		body := func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				losses[i] = l.loss(l.row(c, i))
			}
		}
		return func() error {
			c.Engine.For(n, op.RowGrain(8*n), body)
			var sum float64
			for _, v := range losses {
				sum += v
			}
			c.Out.F32[0] = float32(sum)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, operands)
		grads[0] = op.Apply(l.backward(operands), append(append(gorgonia.Nodes{}, in...), dy)...)
		return grads
	}
	return o
}

// backward is the gradient of the scores; the last operand is that of the loss.
func (l pairLoss) backward(operands int) *op.Op {
	return &op.Op{
		Kind: l.kind + " ds", Args: l.args + idsArg(l.ids), Diff: make([]bool, operands+1), On: l.onCUDA().Backward(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Dim(0)
			return c.For(n, op.RowGrain(8*n), func(_, lo, hi int) {
				g := c.In[operands].F32[0]
				for i := lo; i < hi; i++ {
					ds := c.Out.F32[i*n:][:n]
					clear(ds)
					l.slope(l.row(c, i), ds)
					for j := range ds {
						ds[j] *= g
					}
				}
			})
		},
	}
}

func idsArg(ids int) string {
	if ids < 0 {
		return ""
	}
	return " ids"
}
