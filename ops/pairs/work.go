package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// primitive describes an op on the values of a block. The last two operands are the spans of rows and columns.
type primitive struct {
	kind, args string
	shape      tensor.Shape
	operands   int // without the spans
	fixed      int // the last of those, which have no gradient
	// sequence works on what belongs to a sequence of a side, on one thread.
	sequence func(w *work, worker, i int)
	over     int           // that side: 0 rows, 1 columns
	begin    func(w *work) // works before that, on all threads, or alone
	grad     func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes
	on       func(m oncuda.Sides) map[string]exec.DeviceStep
	aux      []tensor.Shape
	places   bool // aux are integers
	scratch  func(threads int) int
	flops    int64
	inPlace  []int
	adds     bool // to what is there, where the executor wants it so
}

// work is a step of a primitive.
type work struct {
	*exec.Call
	spans   [2]spans
	product *gemm.Product   // on all threads, in the precision of the engine
	serial  []*gemm.Product // on each
}

// rows and columns of a matrix.
func (w *work) row(x []float32, g grid, r int) []float32 {
	n := w.spans[1].size(g[1])
	return x[r*n:][:n]
}

// rowFor returns the row of an operand that belongs to row r of a finer matrix, which is of sequence i.
func (w *work) rowFor(x []float32, g grid, i, r int) []float32 {
	switch g[0] {
	case Sequences:
		r = i
	case One:
		r = 0
	}
	return w.row(x, g, r)
}

// apply makes a node of a primitive for operands on blocks of some sides.
func (s sides) apply(p primitive, spans [2]*gorgonia.Node, in ...*gorgonia.Node) *gorgonia.Node {
	o := &op.Op{
		Kind: "pairs " + p.kind, Args: fmt.Sprintf("%v %v %v", s, p.shape, p.args), Diff: make([]bool, p.operands+2),
		Shape:   func([]tensor.Shape) (tensor.Shape, error) { return p.shape.Clone(), nil },
		InPlace: p.inPlace, Accumulates: p.adds,
	}
	if p.on != nil {
		o.On = p.on(oncuda.Sides(s))
	}
	if p.aux != nil {
		o.Aux = func([]tensor.Shape) (list []exec.AuxSpec) {
			for _, x := range p.aux {
				list = append(list, exec.AuxSpec{Shape: x, Int: p.places})
			}
			return list
		}
	}
	if p.scratch != nil {
		o.Scratch = func(_ []tensor.Shape, threads int) int { return p.scratch(threads) }
	}
	if p.flops > 0 {
		o.FLOPs = func([]tensor.Shape) int64 { return p.flops }
	}
	if p.grad != nil {
		for i := range p.operands - p.fixed {
			o.Diff[i] = true
		}
		o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return append(p.grad(in[:p.operands], out, dy), make(gorgonia.Nodes, p.fixed+2)...)
		}
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		w := &work{Call: c, product: op.Product(c, false, false)}
		for range c.Engine.Threads() {
			w.serial = append(w.serial, op.Product(c, false, false))
		}
		each := func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				p.sequence(w, worker, i)
			}
		}
		return func() error {
			for k := range w.spans {
				w.spans[k] = c.In[p.operands+k].I32
			}
			if p.begin != nil {
				p.begin(w)
			}
			if p.sequence != nil {
				n := w.spans[p.over].size(Sequences)
				grain := n // sums over all sequences
				if work := c.Out.Len() / max(1, n); p.shape[p.over] > 1 {
					grain = max(1, op.ElementGrain/4/max(1, work))
				}
				c.Engine.For(n, grain, each)
			}
			return nil
		}, nil
	}
	return op.Apply(o, append(append(gorgonia.Nodes{}, in...), spans[0], spans[1])...)
}
