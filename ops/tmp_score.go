package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func tmpOp(kind, args string, diff []bool, shape func(in []tensor.Shape) tensor.Shape, run func(c *exec.Call)) *op {
	return &op{kind: kind, args: args, diff: diff,
		shape:   func(in []tensor.Shape) (tensor.Shape, error) { return shape(in), nil },
		prepare: func(c *exec.Call) (exec.Step, error) { return func() error { run(c); return nil }, nil }}
}
func first(in []tensor.Shape) tensor.Shape { return in[0].Clone() }

func MulExp(x, t *gorgonia.Node) *gorgonia.Node {
	o := tmpOp("tmp mulexp", "", []bool{true, true}, first, func(c *exec.Call) {
		e := float32(math.Exp(float64(c.In[1].F32[0])))
		for i, v := range c.In[0].F32 {
			c.Out.F32[i] = v * e
		}
	})
	o.grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		dt := tmpOp("tmp mulexp dt", "", []bool{false, false}, func([]tensor.Shape) tensor.Shape { return tensor.Shape{} }, func(c *exec.Call) {
			s := 0.0
			for i, v := range c.In[0].F32 {
				s += float64(v) * float64(c.In[1].F32[i])
			}
			c.Out.F32[0] = float32(s)
		})
		return gorgonia.Nodes{MulExp(dy, in[1]), apply(dt, out, dy)}
	}
	return apply(o, x, t)
}

func Combine(w []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	if len(xs) == 1 {
		return times(w[0], xs[0])
	}
	y := Blend(w[0], w[1], xs[0], xs[1])
	for i := 2; i < len(xs); i++ {
		y = Blend(1, w[i], y, xs[i])
	}
	return y
}

func Diagonal(x, w *gorgonia.Node) *gorgonia.Node {
	mul := func(kind string) *op {
		return tmpOp(kind, "", []bool{true, true}, first, func(c *exec.Call) {
			n := c.In[1].Len()
			for i, v := range c.In[0].F32 {
				c.Out.F32[i] = v * c.In[1].F32[i%n]
			}
		})
	}
	o := mul("tmp diagonal")
	o.grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		n := in[1].Shape().TotalSize()
		dw := tmpOp("tmp diagonal dw", fmt.Sprint(n), []bool{false, false}, func([]tensor.Shape) tensor.Shape { return tensor.Shape{n} }, func(c *exec.Call) {
			clear(c.Out.F32)
			for i, v := range c.In[0].F32 {
				c.Out.F32[i%n] += v * c.In[1].F32[i]
			}
		})
		return gorgonia.Nodes{apply(mul("tmp diagonal dx"), dy, in[1]), apply(dw, in[0], dy)}
	}
	return apply(o, x, w)
}

func BlockDiagonal(x, w *gorgonia.Node, transposed bool) *gorgonia.Node {
	s := w.Shape()
	d := s[len(s)-1]
	fwd := func(kind string, t bool) *op {
		return tmpOp(kind, fmt.Sprint(d, t), []bool{true, true}, first, func(c *exec.Call) {
			cols := c.In[0].Dim(1)
			wt := c.In[1].F32
			for r := range c.In[0].Dim(0) {
				for b := 0; b < cols/d; b++ {
					x, y := c.In[0].F32[r*cols+b*d:][:d], c.Out.F32[r*cols+b*d:][:d]
					clear(y)
					for i := range d {
						for j := range d {
							if t {
								y[j] += wt[b*d*d+i*d+j] * x[i]
							} else {
								y[i] += wt[b*d*d+i*d+j] * x[j]
							}
						}
					}
				}
			}
		})
	}
	o := fwd("tmp block", transposed)
	o.grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		sh := in[1].Shape().Clone()
		dw := tmpOp("tmp block dw", fmt.Sprint(d, transposed, sh), []bool{false, false}, func([]tensor.Shape) tensor.Shape { return sh }, func(c *exec.Call) {
			clear(c.Out.F32)
			cols := c.In[0].Dim(1)
			for r := range c.In[0].Dim(0) {
				for b := 0; b < cols/d; b++ {
					x, dy := c.In[0].F32[r*cols+b*d:][:d], c.In[1].F32[r*cols+b*d:][:d]
					for i := range d {
						for j := range d {
							if transposed {
								c.Out.F32[b*d*d+i*d+j] += x[i] * dy[j]
							} else {
								c.Out.F32[b*d*d+i*d+j] += dy[i] * x[j]
							}
						}
					}
				}
			}
		})
		return gorgonia.Nodes{apply(fwd("tmp block dx", !transposed), dy, in[1]), apply(dw, in[0], dy)}
	}
	return apply(o, x, w)
}

