package expr

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Op is an op whose result is an expression, element by element.
type Op struct {
	Kind string
	// Args are settings of Layout and Grad: with Kind and Value they are the op's identity.
	Args  string
	Value *Value
	// Layout checks the operands' shapes and says how the elements of the result belong to theirs. nil: Alike().
	Layout func(in []tensor.Shape) (Layout, error)
	// Constant lists operands to which no gradient flows.
	Constant []int
	// Sum has, for operands of which an element is read by several of the result, what sums their gradients, an array of the
	// result's shape, over those.
	Sum map[int]func(*gorgonia.Node) *gorgonia.Node
	// Grad has gradients instead of those of the expression.
	Grad map[int]Gradient
	// On and GradOn are steps for other devices instead of those of the expression, of the op and of its gradient.
	On, GradOn map[string]exec.DeviceStep
}

// Gradient returns the gradient of an operand for the operands, the result and its gradient.
type Gradient = func(in gorgonia.Nodes, out, dy *gorgonia.Node) *gorgonia.Node

// Layout is where operands have the elements for those of the result.
type Layout struct {
	Shape tensor.Shape // of the result
	// Axes are up to three that the elements are counted by; nil: one.
	Axes  []int
	Views []View
}

// View is an operand's. The zero value: its elements are those of the result, in their order.
type View struct {
	From    int   // the first element
	Strides []int // along each axis of the layout; 0 or 1 along the last
}

// Alike is the layout of operands of one shape beside scalars, which are listed.
func Alike(scalars ...int) func(in []tensor.Shape) (Layout, error) {
	return func(in []tensor.Shape) (Layout, error) {
		l := Layout{Views: make([]View, len(in))}
		for i, s := range in {
			switch {
			case slices.Contains(scalars, i):
				if err := op.Need(len(s) == 0, "want a scalar (got %v)", s); err != nil {
					return l, err
				}
				l.Views[i].Strides = []int{0}
			case l.Shape == nil:
				l.Shape = s.Clone()
			default:
				if err := op.Need(s.Eq(l.Shape), "want arrays of one shape (array %d has %v)", i, s); err != nil {
					return l, err
				}
			}
		}
		return l, nil
	}
}

// Apply puts the op into the graph of its operands. It panics with *op.BuildError.
func Apply(o Op, in ...*gorgonia.Node) *gorgonia.Node {
	return op.Apply(o.build(in), in...)
}

// build returns the op for operands of these shapes.
func (o Op) build(in gorgonia.Nodes) *op.Op {
	made := &op.Op{Kind: o.Kind, Args: o.Value.String(), Diff: make([]bool, len(in)), On: o.On}
	if o.Args != "" {
		made.Args += " " + o.Args
	}
	for i := range in {
		made.Diff[i] = !slices.Contains(o.Constant, i)
	}
	if slices.Contains(in, nil) {
		return made // Apply says which
	}
	shapes := make([]tensor.Shape, len(in))
	for i, n := range in {
		shapes[i] = n.Shape()
	}
	layout := o.Layout
	if layout == nil {
		layout = Alike()
	}
	l, err := layout(shapes)
	made.Shape = func([]tensor.Shape) (tensor.Shape, error) { return l.Shape, err }
	if err != nil {
		return made
	}
	for i, v := range l.Views {
		if v.Strides == nil {
			made.InPlace = append([]int{i}, made.InPlace...)
		}
	}
	p := compile(o.Value, l)
	made.Host = p.prepare
	made.Scratch = func(_ []tensor.Shape, threads int) int { return threads * p.room() }
	if made.On == nil {
		made.On = onDevice(o.Value, l)
	}
	made.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		for i := range in {
			if f := o.Grad[i]; f != nil {
				grads[i] = f(in, out, dy)
			} else if made.Diff[i] {
				grads[i] = o.gradient(i, l, in, out, dy)
			}
		}
		return grads
	}
	return made
}

// gradient returns that of operand i: an op of those operands that it reads, of the result and of dy.
func (o Op) gradient(i int, l Layout, in gorgonia.Nodes, out, dy *gorgonia.Node) *gorgonia.Node {
	shape, sum := in[i].Shape(), func(n *gorgonia.Node) *gorgonia.Node { return n }
	if l.Views[i].Strides != nil {
		if shape, sum = l.Shape, o.Sum[i]; sum == nil {
			panic(&op.BuildError{Op: o.Kind, Err: fmt.Errorf("operand %d has no Sum, which its gradient is", i)})
		}
	}
	v := o.Value.gradient(leaf(i), &Value{leaf: result}, &Value{leaf: resultsDx})
	if v == nil {
		v = Number(0).Times(&Value{leaf: resultsDx})
	}
	if v.of == nil && v.leaf == resultsDx {
		return sum(dy)
	}
	d := Op{Kind: o.Kind + " dx", Args: o.Args, On: o.GradOn}
	back := Layout{Shape: shape.Clone(), Axes: l.Axes}
	var operands gorgonia.Nodes
	places := map[leaf]*Value{}
	place := func(x leaf, n *gorgonia.Node, view View) {
		if v.reads(x) {
			places[x] = X(len(operands))
			operands, back.Views = append(operands, n), append(back.Views, view)
		}
	}
	for j, n := range in {
		place(leaf(j), n, l.Views[j])
	}
	place(result, out, View{})
	place(resultsDx, dy, View{})
	for j := range operands {
		d.Constant = append(d.Constant, j)
	}
	d.Value, d.Layout = v.replace(places), func([]tensor.Shape) (Layout, error) { return back, nil }
	return sum(Apply(d, operands...))
}

// replace returns v with other values for some leaves.
func (v *Value) replace(leaves map[leaf]*Value) *Value {
	if v.of == nil {
		if x := leaves[v.leaf]; x != nil {
			return x
		}
		return v
	}
	args := make([]*Value, len(v.args))
	for i, a := range v.args {
		args[i] = a.replace(leaves)
	}
	return &Value{of: v.of, args: args}
}
