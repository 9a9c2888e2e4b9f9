package encoders

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Copied returns s for a computation of its own: parameters are inputs of g, which the
// caller binds to the values of those of s. told hears of each pair once. Nothing is marked
// as a block.
func (s Scope) Copied(g *gorgonia.ExprGraph, told func(parameter, input *gorgonia.Node)) Scope {
	s.weights = copies{s.weights, g, told, map[string]*gorgonia.Node{}}
	s.mark = nil
	return s
}

// copies hands out inputs of a graph in the place of parameters.
type copies struct {
	of    Weights
	g     *gorgonia.ExprGraph
	told  func(parameter, input *gorgonia.Node)
	nodes map[string]*gorgonia.Node
}

// Param implements Weights.
func (c copies) Param(name string, t Traits, init Init, shape ...int) *gorgonia.Node {
	p := c.of.Param(name, t, init, shape...)
	if n := c.nodes[name]; n != nil {
		return n
	}
	n := gorgonia.NewTensor(c.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(p.Name()))
	c.nodes[name] = n
	c.told(p, n)
	return n
}
