package optest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Input is a named graph input of a test with its value: []float32 or []int32.
type Input struct {
	Name  string
	Shape tensor.Shape
	Data  any
}

// In makes an input of a shape (nil: a scalar) and []float32 or []int32 values.
func In(name string, shape []int, data any) Input { return Input{name, shape, data} }

// F32s makes a float32 input with values from r in [-1, 1).
func F32s(r *rand.Rand, name string, shape ...int) Input {
	d := make([]float32, tensor.Shape(shape).TotalSize())
	for i := range d {
		d[i] = 2*r.Float32() - 1
	}
	return Input{name, shape, d}
}

// I32s makes an int32 input.
func I32s(name string, data []int32, shape ...int) Input { return Input{name, shape, data} }

// Engine is shared by the tests of the package.
var Engine = func() *kernel.Engine {
	e, err := kernel.New(kernel.Options{Threads: 2})
	if err != nil {
		panic(err)
	}
	return e
}()

// Nodes puts inputs into a fresh graph.
func Nodes(inputs []Input) (*gorgonia.ExprGraph, gorgonia.Nodes) {
	g := gorgonia.NewGraph()
	var ns gorgonia.Nodes
	for _, in := range inputs {
		dt := tensor.Float32
		if _, ok := in.Data.([]int32); ok {
			dt = tensor.Int32
		}
		if len(in.Shape) == 0 {
			ns = append(ns, gorgonia.NewScalar(g, dt, gorgonia.WithName(in.Name)))
		} else {
			ns = append(ns, gorgonia.NewTensor(g, dt, len(in.Shape), gorgonia.WithShape(in.Shape...),
				gorgonia.WithName(in.Name)))
		}
	}
	return g, ns
}

// Machine compiles outputs and binds inputs.
func Machine(t testing.TB, g *gorgonia.ExprGraph, ns gorgonia.Nodes, inputs []Input,
	outputs ...*gorgonia.Node) *exec.Machine {
	t.Helper()
	m := check.Get(exec.Compile(g, exec.Config{Engine: Engine, Outputs: outputs}))(t)
	for i, in := range inputs {
		check.OK(t, m.SetInput(ns[i], in.Data))
	}
	return m
}

// Eval builds a graph, runs it and returns a copy of the output.
func Eval(t testing.TB, build func(ns gorgonia.Nodes) *gorgonia.Node, inputs ...Input) exec.Array {
	t.Helper()
	g, ns := Nodes(inputs)
	out := build(ns)
	m := Machine(t, g, ns, inputs, out)
	check.OK(t, m.RunAll())
	a := check.Get(m.Value(out))(t)
	return exec.Array{Shape: a.Shape, F32: append([]float32(nil), a.F32...), I32: append([]int32(nil), a.I32...)}
}

// Gradients returns d(sum(out * weight))/d(input) for the inputs named in wrt,
// with fixed random weights so that no gradient cancels by symmetry.
func Gradients(t testing.TB, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int,
	inputs ...Input) (grads [][]float32, loss func() float64) {
	t.Helper()
	g, ns := Nodes(inputs)
	out := build(ns)
	var cost *gorgonia.Node
	if len(out.Shape()) == 0 {
		cost = out
	} else {
		r := rand.New(rand.NewPCG(7, 7))
		w := F32s(r, "test weights", out.Shape()...)
		inputs = append(inputs, w)
		wn := gorgonia.NewTensor(g, tensor.Float32, len(w.Shape), gorgonia.WithShape(w.Shape...),
			gorgonia.WithName(w.Name))
		ns = append(ns, wn)
		cost = Dot(out, wn)
	}
	var params gorgonia.Nodes
	for _, i := range wrt {
		params = append(params, ns[i])
	}
	gs := check.Get(gorgonia.Grad(cost, params...))(t)
	m := Machine(t, g, ns, inputs, append(gorgonia.Nodes{cost}, gs...)...)
	check.OK(t, m.RunAll())
	for _, n := range gs {
		a := check.Get(m.Value(n))(t)
		grads = append(grads, append([]float32(nil), a.F32...))
	}
	g2, ns2 := Nodes(inputs)
	out2 := build(ns2[:len(inputs)])
	cost2 := out2
	if len(out2.Shape()) > 0 {
		cost2 = out2
	}
	m2 := Machine(t, g2, ns2, inputs, cost2)
	loss = func() float64 {
		check.OK(t, m2.RunAll())
		a := check.Get(m2.Value(cost2))(t)
		if len(a.Shape) == 0 {
			return float64(a.F32[0])
		}
		w := inputs[len(inputs)-1].Data.([]float32)
		var s float64
		for i, v := range a.F32 {
			s += float64(v) * float64(w[i])
		}
		return s
	}
	return grads, loss
}

// CheckGrad compares the gradients of build's output (a scalar, or anything under
// a random weighting) against central finite differences. tol is relative to the
// largest gradient of the same input. At most 40 elements of an input are tried.
func CheckGrad(t testing.TB, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int, eps, tol float64,
	inputs ...Input) {
	t.Helper()
	weighted := func(ns gorgonia.Nodes) *gorgonia.Node {
		out := build(ns)
		if len(out.Shape()) == 0 { // gradients takes scalars as they are: dy would be 1
			return scale(out)
		}
		return out
	}
	grads, loss := Gradients(t, weighted, wrt, inputs...)
	for k, i := range wrt {
		x := inputs[i].Data.([]float32)
		var largest float64
		for _, g := range grads[k] {
			largest = max(largest, math.Abs(float64(g)))
		}
		step := max(1, len(x)/40)
		for j := 0; j < len(x); j += step {
			old := x[j]
			x[j] = old + float32(eps)
			up := loss()
			x[j] = old - float32(eps)
			down := loss()
			x[j] = old
			want := (up - down) / (float64(old+float32(eps)) - float64(old-float32(eps)))
			if got := float64(grads[k][j]); !(math.Abs(got-want) <= tol*max(largest, 1e-3)) {
				t.Errorf("gradient of %s[%d]: got %v, finite differences %v", inputs[i].Name, j, got, want)
			}
		}
	}
}

// Dot returns sum(x*w) as a scalar node; its gradient for x is dy*w.
func Dot(x, w *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "test dot", Diff: []bool{true, false},
		Shape: func([]tensor.Shape) (tensor.Shape, error) { return tensor.ScalarShape(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { c.Out.F32[0] = vector.Dot(c.In[0].F32, c.In[1].F32); return nil }, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(&op.Op{
				Kind: "test dot dx", Diff: []bool{false, false},
				Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil },
				Host: func(c *exec.Call) (exec.Step, error) {
					return func() error { vector.Scale(c.Out.F32, c.In[1].F32[0], c.In[0].F32); return nil }, nil
				},
			}, in[1], dy), nil}
		},
	}, x, w)
}

// scale returns -1.75*x, and so does its gradient with dy.
func scale(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "test scale", Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { vector.Scale(c.Out.F32, -1.75, c.In[0].F32); return nil }, nil
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{scale(dy)}
		},
	}, x)
}

// Near fails unless got and want agree to tol, relative to the largest of want.
func Near(t testing.TB, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	var largest float64
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tol*max(largest, 1e-6)) {
			t.Fatalf("%s[%d]: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Floats returns the values of a float32 input.
func (in Input) Floats() []float32 { return in.Data.([]float32) }
