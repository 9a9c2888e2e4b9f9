package layout

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// RepeatFirst puts k more copies of the first of every l values of x (N*l) int32 in front
// of it: (N*(l+k)), such as the id of a class token before every text.
func RepeatFirst(x *gorgonia.Node, l, k int) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 1 && l > 0 && k >= 0,
			"want a vector, a length of at least 1 and copies of at least 0 (got %v, %d and %d)", in[0], l,
			k); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0] / l * (l + k)},
			op.Need(in[0][0]%l == 0, "values must be a multiple of %d (got %d)", l, in[0][0])
	}
	o := op.IntsOp("repeat first", 1, shape, func(c *exec.Call) error {
		out := c.Out.I32
		for x := c.In[0].I32; len(x) > 0; x = x[l:] {
			for i := range k {
				out[i] = x[0]
			}
			out = out[k+copy(out[k:], x[:l]):]
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("l=%d k=%d", l, k), oncuda.Ints("repeat_first", l, k)
	return op.Apply(o, x)
}

// AddInt adds k to every value of x (N), or to a scalar x, int32.
func AddInt(x *gorgonia.Node, k int) *gorgonia.Node {
	same := func(in []tensor.Shape) (tensor.Shape, error) {
		return in[0].Clone(), op.Need(len(in[0]) <= 1, "want a vector or a scalar (got %v)", in[0])
	}
	o := op.IntsOp("add int", 1, same, func(c *exec.Call) error {
		for i, v := range c.In[0].I32 {
			c.Out.I32[i] = v + int32(k)
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("k=%d", k), oncuda.Ints("add_int", k)
	return op.Apply(o, x)
}

// AtLeastInt returns the larger of each value of x (N) int32 and least.
func AtLeastInt(x *gorgonia.Node, least int) *gorgonia.Node {
	o := op.IntsOp("at least int", 1, op.SameInts, func(c *exec.Call) error {
		for i, v := range c.In[0].I32 {
			c.Out.I32[i] = max(v, int32(least))
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("least=%d", least), oncuda.Ints("at_least", least)
	return op.Apply(o, x)
}

// ConcatInts joins int32 vectors end to end.
func ConcatInts(xs ...*gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if len(in) == 0 {
			return nil, fmt.Errorf("want at least one vector")
		}
		n := 0
		for i, s := range in {
			if err := op.Need(len(s) == 1, "operand %d must be a vector (got %v)", i, s); err != nil {
				return nil, err
			}
			n += s[0]
		}
		return tensor.Shape{n}, nil
	}
	o := op.IntsOp("concat ints", len(xs), shape, func(c *exec.Call) error {
		out := c.Out.I32
		for _, x := range c.In {
			out = out[copy(out, x.I32):]
		}
		return nil
	})
	o.On = oncuda.ConcatInts()
	return op.Apply(o, xs...)
}

// GatherInts returns x[idx[r]] for x (N) and idx (R), both int32: (R). An index
// outside of x is an error of the run.
func GatherInts(x, idx *gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		return in[1].Clone(), op.Need(len(in[0]) == 1 && len(in[1]) == 1, "want two vectors")
	}
	o := op.IntsOp("gather ints", 2, shape, func(c *exec.Call) error {
		x := c.In[0].I32
		for r, i := range c.In[1].I32 {
			if i < 0 || int(i) >= len(x) {
				return fmt.Errorf("ops: gather ints: index %d at %d: want [0, %d)", i, r, len(x))
			}
			c.Out.I32[r] = x[i]
		}
		return nil
	})
	o.On = oncuda.GatherInts()
	return op.Apply(o, x, idx)
}

// LastRows returns the row of the last one of lengths[r] rows of each sequence of l rows, as a
// matrix of all sequences numbers them, for lengths (R) int32: (R). Of a sequence without
// rows it is the first one of l. A length outside [0, l] is an error of the run.
func LastRows(lengths *gorgonia.Node, l int) *gorgonia.Node {
	o := op.IntsOp("last rows", 1, op.SameInts, func(c *exec.Call) error {
		for r, n := range c.In[0].I32 {
			if n < 0 || int(n) > l {
				return fmt.Errorf("ops: last rows: lengths[%d] is %d: want [0, %d]", r, n, l)
			}
			c.Out.I32[r] = int32(r*l) + max(n-1, 0)
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("l=%d", l), oncuda.Ints("last_rows", l)
	return op.Apply(o, lengths)
}

// Numbers returns 0, 1, 2 ... for each value of x (N) int32: (N).
func Numbers(x *gorgonia.Node) *gorgonia.Node {
	o := op.IntsOp("numbers", 1, op.SameInts, func(c *exec.Call) error {
		for i := range c.Out.I32 {
			c.Out.I32[i] = int32(i)
		}
		return nil
	})
	o.On = oncuda.OfLength("numbers")
	return op.Apply(o, x)
}

// FullLengths returns l for each sequence of l values of x (R*l) int32: (R).
func FullLengths(x *gorgonia.Node, l int) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 1 && l > 0, "want a vector and a length of at least 1 (got %v and %d)", in[0],
			l); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0] / l},
			op.Need(in[0][0]%l == 0, "values must be a multiple of %d (got %d)", l, in[0][0])
	}
	o := op.IntsOp("full lengths", 1, shape, func(c *exec.Call) error {
		for i := range c.Out.I32 {
			c.Out.I32[i] = int32(l)
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("l=%d", l), oncuda.OfLength("fill_ints", l)
	return op.Apply(o, x)
}
