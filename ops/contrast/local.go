package contrast

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// LocalArgs are the operands of LocalContrast.
type LocalArgs struct {
	// Logits s (B, B*P): sample i as a whole against the parts of every sample, those of
	// sample j in columns [j*P, (j+1)*P).
	Logits *gorgonia.Node
	// Lengths (B) int32, or nil: only parts [First, Lengths[j]) of sample j exist.
	Lengths *gorgonia.Node
	// IDs (B) int32, or nil: samples with one id are no negatives of each other.
	IDs *gorgonia.Node
	// First is the first part that counts, such as 1 behind a class token.
	First int
}

// LocalContrast is the contrast of wholes with their own parts within a batch, the
// local mutual information of triple contrastive learning (Yang et al. 2022, section
// 3.3). Each part p of sample i is a positive of its own against all parts of the other
// samples:
//
//	l_ip = -log( exp(s_i,ip) / (exp(s_i,ip) + sum_{j /= i, q} exp(s_i,jq)) )
//	L    = mean_i mean_p l_ip
//
// Only parts that exist take part. A sample without any is left out of the mean; without
// any sample, and for a sample without negatives, the loss is 0. The other parts of
// sample i are neither positives nor negatives of part p. The gradient goes to Logits.
func LocalContrast(a LocalArgs) *gorgonia.Node {
	in := op.Operands{a.Logits}
	l := localContrast{lengths: in.Add(a.Lengths), ids: in.Add(a.IDs), first: a.First}
	l.operands = len(in)
	return op.Apply(l.forward(), in...)
}

// localContrast describes the op: positions of its operands, -1 for none.
type localContrast struct {
	lengths, ids, first int
	operands            int
}

// onCUDA is the loss as its steps for the CUDA device know it.
func (l localContrast) onCUDA() oncuda.LocalContrast {
	return oncuda.LocalContrast{Lengths: l.lengths, IDs: l.ids, First: l.first}
}

// Auxiliary results, for each row: lse = log sum_{negatives} exp s, the number of parts
// and sum_p sigmoid(lse - s_ip), of which the gradient is made:
//
//	l_ip         = log(1 + exp(lse - s_ip))
//	dl_ip/ds_ip  = -sigmoid(lse - s_ip)
//	dl_ip/ds_jq  = sigmoid(lse - s_ip) exp(s_jq - lse)
const (
	localLSE = iota
	localCount
	localSum
)

func (l localContrast) args() string {
	return fmt.Sprintf("lengths=%d ids=%d first=%d", l.lengths, l.ids, l.first)
}

func (l localContrast) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2 && in[0][0] > 0 && in[0][1]%in[0][0] == 0, "want logits (B, B*P)"); err != nil {
		return nil, err
	}
	b := in[0][0]
	return tensor.ScalarShape(), op.All(
		op.Need(l.first >= 0 && l.first < max(1, in[0][1]/b), "the first part must be in [0, %d) (got %d)", in[0][1]/b,
			l.first),
		op.WantShape(in, l.lengths, "lengths", b),
		op.WantShape(in, l.ids, "ids", b),
	)
}

// parts returns which columns of a row belong to existing parts of sample j.
func (l localContrast) parts(c *exec.Call, j, p int) (lo, hi int) {
	n := p
	if l.lengths >= 0 {
		n = min(p, int(c.In[l.lengths].I32[j]))
	}
	return j*p + l.first, j*p + max(n, l.first)
}

// negative says whether sample j gives negatives to sample i.
func (l localContrast) negative(c *exec.Call, i, j int) bool {
	return j != i && (l.ids < 0 || c.In[l.ids].I32[i] != c.In[l.ids].I32[j])
}

func (l localContrast) forward() *op.Op {
	o := &op.Op{Kind: "local contrast", Args: l.args(), Diff: make([]bool, l.operands), Shape: l.shape,
		On: l.onCUDA().Forward()}
	o.Diff[0] = true
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		rows := exec.AuxSpec{Shape: tensor.Shape{in[0][0]}}
		return []exec.AuxSpec{rows, rows, rows}
	}
	o.Scratch = func(in []tensor.Shape, _ int) int { return in[0][0] }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, cols := c.In[0].Dim(0), c.In[0].Dim(1)
		body := func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				c.Scratch[i] = l.row(c, i, cols/b, c.In[0].F32[i*cols:(i+1)*cols])
			}
		}
		return func() error {
			c.Engine.For(b, op.RowGrain(8*cols), body)
			var sum float64
			kept := 0
			for i, n := range c.Aux[localCount].F32 {
				if n > 0 {
					kept++
					sum += float64(c.Scratch[i])
				}
			}
			c.Out.F32[0] = float32(sum / float64(max(1, kept)))
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, l.operands)
		grads[0] = op.Apply(l.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
		return grads
	}
	return o
}

// row returns the mean loss of the parts of sample i and writes its auxiliary results.
func (l localContrast) row(c *exec.Call, i, p int, s []float32) float32 {
	lse := l.negatives(c, i, p, s)
	lo, hi := l.parts(c, i, p)
	var loss, sum float64
	for _, v := range s[lo:hi] {
		d := lse - float64(v)
		e := math.Exp(-math.Abs(d))
		loss += max(d, 0) + math.Log1p(e)
		if d > 0 {
			sum += 1 / (1 + e)
		} else {
			sum += e / (1 + e)
		}
	}
	c.Aux[localLSE].F32[i], c.Aux[localCount].F32[i], c.Aux[localSum].F32[i] = float32(lse), float32(hi-lo),
		float32(sum)
	return float32(loss / float64(max(1, hi-lo)))
}

// negatives returns log sum exp over the parts of the other samples, -Inf without any.
func (l localContrast) negatives(c *exec.Call, i, p int, s []float32) float64 {
	top := minusInf
	for j := range len(s) / p {
		if lo, hi := l.parts(c, j, p); lo < hi && l.negative(c, i, j) {
			top = max(top, vector.Max(s[lo:hi]))
		}
	}
	if top == minusInf {
		return math.Inf(-1)
	}
	var sum float64
	for j := range len(s) / p {
		if lo, hi := l.parts(c, j, p); lo < hi && l.negative(c, i, j) {
			sum += float64(vector.SumExp(s[lo:hi], top))
		}
	}
	return float64(top) + math.Log(sum)
}

// backward returns the gradient of the logits, for the operands, the output and dy.
func (l localContrast) backward() *op.Op {
	o := &op.Op{Kind: "local contrast dx", Args: l.args(), Diff: make([]bool, l.operands+2), InPlace: []int{0},
		On: l.onCUDA().Backward()}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, cols := c.In[0].Dim(0), c.In[0].Dim(1)
		g := float32(0)
		body := func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				l.rowGradient(c, i, cols/b, g)
			}
		}
		return func() error {
			g = c.In[l.operands+1].F32[0] / float32(max(1, countKept(c.InAux[l.operands][localCount].F32)))
			c.Engine.For(b, op.RowGrain(8*cols), body)
			return nil
		}, nil
	}
	return o
}

// rowGradient writes row i of the gradient; g is what reaches each row that counts. The
// result may take the memory of the logits.
func (l localContrast) rowGradient(c *exec.Call, i, p int, g float32) {
	b := c.In[0].Dim(0)
	s, out := c.In[0].F32[i*b*p:(i+1)*b*p], c.Out.F32[i*b*p:(i+1)*b*p]
	aux := c.InAux[l.operands]
	lse, n, sum := aux[localLSE].F32[i], aux[localCount].F32[i], aux[localSum].F32[i]
	if n == 0 || lse == minusInf {
		clear(out)
		return
	}
	g /= n
	for j := range b {
		lo, hi := l.parts(c, j, p)
		clear(out[j*p : lo])
		clear(out[hi : (j+1)*p])
		switch {
		case j == i:
			for k := lo; k < hi; k++ {
				out[k] = -g / (1 + float32(math.Exp(float64(s[k]-lse))))
			}
		case l.negative(c, i, j):
			vector.SoftmaxDiff(out[lo:hi], s[lo:hi], lse, g*sum)
		default:
			clear(out[lo:hi])
		}
	}
}
