package onnx

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/weights"
)

// Graph is a model in the making. What it lacks of the parameters is told by Write.
type Graph struct {
	params    map[string]weights.Param
	nodes     []message
	constants []constant
	known     map[string]bool // names of constants
	inputs    []message
	given     map[string]bool // names of inputs
	outputs   []message
	last      int
	err       error
	states    string // of the tower that was added last
}

// constant is a tensor of the model.
type constant struct {
	name  string
	shape []int
	ints  []int64                   // of an integer tensor
	read  func(dst []float32) error // of any other
}

func (c constant) kind() int64 {
	if c.ints != nil {
		return int64Type
	}
	return float32Type
}

func (c constant) len() int {
	n := 1
	for _, d := range c.shape {
		n *= d
	}
	return n
}

// bytes is the size of the numbers.
func (c constant) bytes() int64 {
	if c.ints != nil {
		return 8 * int64(len(c.ints))
	}
	return 4 * int64(c.len())
}

// New returns an empty model of parameters.
func New(params []weights.Param) *Graph {
	g := &Graph{params: map[string]weights.Param{}, known: map[string]bool{}, given: map[string]bool{}}
	for _, p := range params {
		g.params[p.Name] = p
	}
	return g
}

// Tensors returns how many tensors the model has, and how many numbers.
func (g *Graph) Tensors() (tensors, numbers int) {
	for _, c := range g.constants {
		numbers += c.len()
	}
	return len(g.constants), numbers
}

// fail keeps the first error.
func (g *Graph) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf("onnx: "+format, args...)
	}
}

// input declares an input once and returns its name.
func (g *Graph) input(name string, kind int64, axes ...any) string {
	if !g.given[name] {
		g.given[name] = true
		g.inputs = append(g.inputs, value(name, kind, axes...))
	}
	return name
}

// Output gives a value a name, and makes it an output of the axes, numbers or names.
func (g *Graph) Output(name, x string, axes ...any) {
	g.nodes = append(g.nodes, node("Identity", []string{x}, []string{name}, nil))
	g.outputs = append(g.outputs, value(name, float32Type, axes...))
}

// op adds an operator with one output and returns that.
func (g *Graph) op(kind string, in []string, attributes ...attribute) string {
	return g.several(kind, 1, in, attributes...)[0]
}

// several adds an operator of n outputs.
func (g *Graph) several(kind string, n int, in []string, attributes ...attribute) (out []string) {
	for range n {
		g.last++
		out = append(out, fmt.Sprintf("%s_%d", kind, g.last))
	}
	g.nodes = append(g.nodes, node(kind, in, out, attributes))
	return out
}

// on lists operands.
func on(in ...string) []string { return in }

// add adds a constant once and returns its name.
func (g *Graph) add(c constant) string {
	if !g.known[c.name] {
		g.known[c.name] = true
		g.constants = append(g.constants, c)
	}
	return c.name
}

// ints is a constant vector of integers.
func (g *Graph) ints(v ...int) string {
	list := make([]int64, len(v))
	for i, x := range v {
		list[i] = int64(x)
	}
	return g.add(constant{name: fmt.Sprint("ints", v), shape: []int{len(v)}, ints: list})
}

// table is a constant matrix of integers.
func (g *Graph) table(name string, rows, columns int, at func(i, j int) int) string {
	list := make([]int64, 0, rows*columns)
	for i := range rows {
		for j := range columns {
			list = append(list, int64(at(i, j)))
		}
	}
	return g.add(constant{name: name, shape: []int{rows, columns}, ints: list})
}

// number is a constant scalar.
func (g *Graph) number(v float32) string {
	return g.add(constant{name: fmt.Sprint("number ", v), read: func(dst []float32) error { dst[0] = v; return nil }})
}

// param is a parameter, in another shape where one is given.
func (g *Graph) param(name string, shape ...int) string {
	p, ok := g.params[name]
	if !ok {
		g.fail("the model has no %s", name)
		return name
	}
	c := constant{name: name, shape: p.Shape, read: p.Read}
	if len(shape) > 0 {
		c.shape = shape
		if n := (constant{shape: p.Shape}).len(); n != c.len() {
			g.fail("%s has shape %v, which does not become %v", name, p.Shape, shape)
		}
	}
	return g.add(c)
}

// has says whether there is a parameter.
func (g *Graph) has(name string) bool { _, ok := g.params[name]; return ok }

// matrix is the parameter (out, in) of a linear layer as (in, out).
func (g *Graph) matrix(name string) string {
	p, ok := g.params[name]
	if !ok || len(p.Shape) != 2 {
		g.fail("the model has no matrix %s (it has %v)", name, p.Shape)
		return name
	}
	out, in := p.Shape[0], p.Shape[1]
	return g.add(constant{name: name, shape: []int{in, out}, read: func(dst []float32) error {
		all := make([]float32, len(dst))
		err := p.Read(all)
		for i := range out {
			for j := range in {
				dst[j*out+i] = all[i*in+j]
			}
		}
		return err
	}})
}

// width is the last axis of a parameter.
func (g *Graph) width(name string) int {
	shape := g.params[name].Shape
	if len(shape) == 0 {
		return 0
	}
	return shape[len(shape)-1]
}

// States are the hidden states of all tokens of the tower that was added last, (B, T, D); empty where it has none.
func (g *Graph) States() string { return g.states }

// Flat is x (B, m, D) as rows (B, m*D).
func (g *Graph) Flat(x string) string { return g.reshape(x, 0, -1) }

// ints is an attribute of a list.
func ints(name string, v ...int) attribute { return attribute{name, slices.Clone(v)} }
