package layout

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SequenceRows returns the n rows from row from on of every sequence of t rows of x
// (N*t, D): (N*n, D), such as the class tokens at the front of every image.
func SequenceRows(x *gorgonia.Node, t, from, n int) *gorgonia.Node {
	return op.Apply(sequencePart{t: t, from: from, n: n}.forward(), x)
}

// SequenceRest returns what SequenceRows leaves, every sequence of t rows of x (N*t, D)
// without the n rows from row from on: (N*(t-n), D).
func SequenceRest(x *gorgonia.Node, t, from, n int) *gorgonia.Node {
	return op.Apply(sequencePart{t: t, from: from, n: n, rest: true}.forward(), x)
}

// sequencePart is the rows of a sequence of t that an op keeps: [from, from+n), or with
// rest all others.
type sequencePart struct {
	t, from, n int
	rest       bool
}

func (p sequencePart) args() string {
	return fmt.Sprintf("t=%d from=%d n=%d rest=%t", p.t, p.from, p.n, p.rest)
}

// kept returns the number of rows kept.
func (p sequencePart) kept() int {
	if p.rest {
		return p.t - p.n
	}
	return p.n
}

// run is rows that follow each other both in a sequence and in its part.
type run struct{ whole, part, n int }

// runs returns the rows kept; the second run may be empty.
func (p sequencePart) runs() [2]run {
	if p.rest {
		return [2]run{{0, 0, p.from}, {p.from + p.n, p.from, p.t - p.from - p.n}}
	}
	return [2]run{{p.from, 0, p.n}}
}

func (p sequencePart) check() error {
	return op.All(
		op.Need(p.from >= 0 && p.n > 0 && p.from+p.n <= p.t, "rows %d to %d are not in a sequence of %d", p.from,
			p.from+p.n, p.t),
		op.Need(p.kept() > 0, "nothing is left of a sequence of %d without %d rows", p.t, p.n),
	)
}

func (p sequencePart) forward() *op.Op {
	return &op.Op{
		Kind: "sequence rows", Args: p.args(), Diff: []bool{true}, On: p.place().Take(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.All(op.Need(len(in[0]) == 2, "want x (N*t, D)"), p.check()); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0] / p.t * p.kept(), in[0][1]},
				op.Need(in[0][0]%p.t == 0, "rows must be a multiple of %d (got %d)", p.t, in[0][0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols, runs := c.In[0].Dim(1), p.runs()
			whole, part := p.t*cols, p.kept()*cols
			sequences := c.In[0].Dim(0) / p.t
			return c.For(sequences, op.RowGrain(part), func(_, lo, hi int) {
				for s := lo; s < hi; s++ {
					x, out := c.In[0].F32[s*whole:(s+1)*whole], c.Out.F32[s*part:(s+1)*part]
					for _, r := range runs {
						copy(out[r.part*cols:(r.part+r.n)*cols], x[r.whole*cols:])
					}
				}
			})
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(p.backward(), dy)}
		},
	}
}

// backward puts the rows of dy at their places among zeros.
func (p sequencePart) backward() *op.Op {
	return &op.Op{
		Kind: "sequence rows dx", Args: p.args(), Diff: []bool{false}, Accumulates: true, On: p.place().Put(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0] / p.kept() * p.t, in[0][1]}, op.Need(in[0][0]%p.kept() == 0, "dy does not fit")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols, runs := c.In[0].Dim(1), p.runs()
			whole, part := p.t*cols, p.kept()*cols
			sequences := c.In[0].Dim(0) / p.kept()
			return c.For(sequences, op.RowGrain(whole), func(_, lo, hi int) {
				for s := lo; s < hi; s++ {
					dy, out := c.In[0].F32[s*part:(s+1)*part], c.Out.F32[s*whole:(s+1)*whole]
					if !c.Accumulate {
						clear(out)
					}
					for _, r := range runs {
						from, row := dy[r.part*cols:(r.part+r.n)*cols], out[r.whole*cols:(r.whole+r.n)*cols]
						if c.Accumulate {
							vector.Add(row, row, from)
						} else {
							copy(row, from)
						}
					}
				}
			})
		},
	}
}

// InsertRows puts the k rows of each sequence of y (N*k, D) behind the first at rows of
// the sequence of l rows of x (N*l, D) with the same number: (N*(l+k), D). SequenceRows
// and SequenceRest take the two apart again.
func InsertRows(x, y *gorgonia.Node, l, k, at int) *gorgonia.Node {
	part := sequencePart{t: l + k, from: at, n: k}
	return op.Apply(&op.Op{
		Kind: "insert rows", Args: fmt.Sprintf("l=%d k=%d at=%d", l, k, at), Diff: []bool{true, true},
		On: oncuda.Insert(l, k, at),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, y := in[0], in[1]
			if err := op.All(
				op.Need(l > 0 && k > 0 && at >= 0 && at <= l,
					"want sequences of at least one row and a place within the first (got %d and %d rows, place %d)",
					l, k, at),
				op.Need(len(x) == 2 && len(y) == 2 && x[1] == y[1], "want x (N*l, D) and y (N*k, D)"),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0] + y[0], x[1]}, op.Need(x[0]%l == 0 && y[0]%k == 0 && x[0]/l == y[0]/k,
				"want as many sequences of %d rows in x as of %d in y (got %d and %d rows)", l, k, x[0], y[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols := c.In[0].Dim(1)
			first, more, own := at*cols, k*cols, l*cols
			return c.For(c.In[0].Dim(0)/l, op.RowGrain(own+more), func(_, lo, hi int) {
				for s := lo; s < hi; s++ {
					x, out := c.In[0].F32[s*own:(s+1)*own], c.Out.F32[s*(own+more):(s+1)*(own+more)]
					copy(out, x[:first])
					copy(out[first:], c.In[1].F32[s*more:(s+1)*more])
					copy(out[first+more:], x[first:])
				}
			})
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			rest := part
			rest.rest = true
			return gorgonia.Nodes{op.Apply(rest.forward(), dy), op.Apply(part.forward(), dy)}
		},
	}, x, y)
}

// place is the part as its steps for the CUDA device know it.
func (p sequencePart) place() oncuda.Place {
	if p.rest {
		return oncuda.Place{T: p.t, Kept: p.kept(), From: p.from, Shift: p.n}
	}
	return oncuda.Place{T: p.t, Kept: p.n, Shift: p.from}
}
