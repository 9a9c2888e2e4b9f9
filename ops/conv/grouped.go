package conv

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Grouped is Conv whose filters read a group of the channels each, PyTorch's nn.Conv2d with groups: of x (B*H*W, Cin) with
// w (Cout, Cin/groups, k, k), (B*Ho*Wo, Cout). The first Cout/groups filters read the first Cin/groups channels, and so on.
// One group is Conv, and groups of one channel with one filter Depthwise.
func Grouped(x, w *gorgonia.Node, groups int, g Geometry) *gorgonia.Node {
	switch s := w.Shape(); {
	case groups == 1:
		return Conv(x, w, g)
	case len(s) == 4 && s[0] == groups && s[1] == 1 && len(x.Shape()) == 2 && x.Shape()[1] == groups:
		return Depthwise(x, w, g)
	}
	return op.Apply(grouped{g, groups}.forward(), x, w)
}

type grouped struct {
	Geometry
	groups int
}

func (g grouped) args() string { return fmt.Sprintf("%v groups=%d", g.Geometry, g.groups) }

// one is the shapes of x and w of a group.
func (g grouped) one(x, w tensor.Shape) (tensor.Shape, tensor.Shape, error) {
	if err := op.All(op.Need(len(x) == 2 && len(w) == 4, "want x (B*H*W, Cin) and w (Cout, Cin/groups, k, k) (got %v and %v)", x, w),
		op.Need(g.groups > 0, "want at least one group (got %d)", g.groups)); err != nil {
		return nil, nil, err
	}
	return tensor.Shape{x[0], x[1] / g.groups}, tensor.Shape{w[0] / g.groups, w[1], w[2], w[3]},
		op.Need(x[1]%g.groups == 0 && w[0]%g.groups == 0, "%d groups must divide the %d channels and %d filters", g.groups, x[1], w[0])
}

// result is the shape of y.
func (g grouped) result(x, w tensor.Shape) (tensor.Shape, error) {
	x1, w1, err := g.one(x, w)
	if err != nil {
		return nil, err
	}
	y, err := g.Geometry.result(x1, w1)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{y[0], w[0]}, nil
}

// parts are the numbers of x and y of a group, the working memory of its convolution and that of all: one of each.
func (g grouped) parts(x, w tensor.Shape, threads int) (nx, ny, inner, all int) {
	x1, w1, err := g.one(x, w)
	if err != nil {
		return 0, 0, 0, 0
	}
	nx, inner = x1.TotalSize(), g.scratch(x1, w1, threads)
	ny = x1[0] / max(1, g.in()) * g.out() * w1[0]
	return nx, ny, inner, nx + ny + inner
}

// mover copies columns of wide rows into narrow ones, or back. Its body is made once, so that a run allocates nothing.
type mover struct {
	engine       exec.Engine
	narrow, wide []float32
	d, from, e   int
	back         bool
	body         func(worker, lo, hi int)
}

func newMover(c *exec.Call) *mover {
	m := &mover{engine: c.Engine}
	m.body = func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			narrow, wide := m.narrow[r*m.e:][:m.e], m.wide[r*m.d+m.from:][:m.e]
			if m.back {
				copy(wide, narrow)
			} else {
				copy(narrow, wide)
			}
		}
	}
	return m
}

// group moves the columns of a group of n of rows of d.
func (m *mover) group(narrow, wide []float32, d, i, n int, back bool) {
	m.narrow, m.wide, m.d, m.e, m.back = narrow, wide, d, d/n, back
	m.from = i * m.e
	m.engine.For(len(narrow)/m.e, op.RowGrain(m.e), m.body)
	m.narrow, m.wide = nil, nil
}

// step makes a step that calls run for each group with its number, memory for its x and y, and that of the kernel k.
func (g grouped) step(c *exec.Call, x, w tensor.Shape,
	run func(m *mover, k *convolve.Convolution, group int, x, y, scratch []float32)) (exec.Step, error) {
	x1, w1, err := g.one(x, w)
	if err != nil {
		return nil, err
	}
	k, err := g.convolution(c, x1, w1)
	nx, ny, _, _ := g.parts(x, w, c.Engine.Threads())
	m := newMover(c)
	return func() error {
		for i := range g.groups {
			run(m, k, i, c.Scratch[:nx], c.Scratch[nx:][:ny], c.Scratch[nx+ny:])
		}
		return nil
	}, err
}

func (g grouped) forward() *op.Op {
	return &op.Op{
		Kind: "grouped conv", Args: g.args(), Diff: []bool{true, true},
		Shape:   func(in []tensor.Shape) (tensor.Shape, error) { return g.result(in[0], in[1]) },
		Scratch: func(in []tensor.Shape, threads int) int { _, _, _, n := g.parts(in[0], in[1], threads); return n },
		FLOPs: func(in []tensor.Shape) int64 {
			x1, w1, err := g.one(in[0], in[1])
			if err != nil {
				return 0
			}
			return int64(g.groups) * g.flops(x1, w1)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			in, out, n := c.In[0].Dim(1), c.Out.Dim(1), c.In[1].Len()/g.groups
			return g.step(c, c.In[0].Shape, c.In[1].Shape, func(m *mover, k *convolve.Convolution, i int, x, y, scratch []float32) {
				m.group(x, c.In[0].F32, in, i, g.groups, false)
				k.Forward(y, x, c.In[1].F32[i*n:][:n], convolve.After{}, scratch)
				m.group(y, c.Out.F32, out, i, g.groups, true)
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(g.gradX(in[0].Shape()), dy, in[1]), op.Apply(g.gradW(in[1].Shape()), dy, in[0])}
		},
	}
}

// gradX returns dx of shape x for dy and w.
func (g grouped) gradX(x tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "grouped conv dx", Args: g.args(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			y, err := g.result(x, in[1])
			return x.Clone(), op.All(err, op.Need(y.Eq(in[0]), "dy must have shape %v (got %v)", y, in[0]))
		},
		Scratch: func(in []tensor.Shape, threads int) int { _, _, _, n := g.parts(x, in[1], threads); return n },
		Host: func(c *exec.Call) (exec.Step, error) {
			out, n := c.In[0].Dim(1), c.In[1].Len()/g.groups
			return g.step(c, x, c.In[1].Shape, func(m *mover, k *convolve.Convolution, i int, dx, dy, scratch []float32) {
				m.group(dy, c.In[0].F32, out, i, g.groups, false)
				k.Data(dx, dy, c.In[1].F32[i*n:][:n], false, scratch)
				m.group(dx, c.Out.F32, x[1], i, g.groups, true)
			})
		},
	}
}

// gradW returns dw of shape w for dy and x.
func (g grouped) gradW(w tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "grouped conv dw", Args: g.args(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			y, err := g.result(in[1], w)
			return w.Clone(), op.All(err, op.Need(y.Eq(in[0]), "dy must have shape %v (got %v)", y, in[0]))
		},
		Scratch: func(in []tensor.Shape, threads int) int { _, _, _, n := g.parts(in[1], w, threads); return n },
		Host: func(c *exec.Call) (exec.Step, error) {
			in, out, n := c.In[1].Dim(1), c.In[0].Dim(1), w.TotalSize()/g.groups
			return g.step(c, c.In[1].Shape, w, func(m *mover, k *convolve.Convolution, i int, x, dy, scratch []float32) {
				m.group(x, c.In[1].F32, in, i, g.groups, false)
				m.group(dy, c.In[0].F32, out, i, g.groups, false)
				k.Weights(c.Out.F32[i*n:][:n], dy, x, false, scratch)
			})
		},
	}
}
