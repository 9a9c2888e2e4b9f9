package encoders

import (
	"fmt"
	"strconv"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Weights hands out parameters as nodes of the computation under construction.
type Weights interface {
	// Param returns the node of the parameter with this full name. The first
	// request fixes its shape, its traits and how it is initialised; a later request with
	// another shape is a programmer error and panics.
	Param(name string, t Traits, init Init, shape ...int) *gorgonia.Node
}

// Traits are what a parameter is besides its name and shape. Who updates, saves or resizes
// parameters asks them and knows no names.
type Traits struct {
	Momentum bool // the momentum encoder has a copy of it
	Frozen   bool // is not trained
	// Given: comes from the data of training, so that a checkpoint that training starts from does
	// not change it.
	Given bool
	// Locked: is not trained, and has no gradient, optimiser state nor momentum copy; where a momentum copy is
	// asked for, it is the parameter itself.
	Locked bool
	// Added: tuning puts it beside the parameters of a transformer, whose stored weights have none.
	Added bool
	// Front: of a transformer, stands in front of its blocks. Whoever trains the last ones leaves it as it is.
	Front bool
	Group string // by which optimizer.no_decay may name it: bias, temperature or metric; empty: none
	Pull  Pull   // of the weights of a learned metric, besides the gradient
	// Axes is the number of axes that optimizer.no_decay sees, where the shape leaves out one
	// of length 1; 0: those of the shape.
	Axes int
	// Grid: a position table over a square grid, which may be resampled to another image
	// size, but for its first Classes rows, those of class tokens.
	Grid    bool
	Classes int
	// Settings names the settings that give the parameter its shape, for messages; empty:
	// those of [model].
	Settings string
}

// over returns t with what o sets.
func (t Traits) over(o Traits) Traits {
	t.Momentum, t.Frozen, t.Locked, t.Grid = t.Momentum || o.Momentum, t.Frozen || o.Frozen, t.Locked || o.Locked,
		t.Grid || o.Grid
	t.Given, t.Added, t.Front = t.Given || o.Given, t.Added || o.Added, t.Front || o.Front
	if o.Pull != (Pull{}) {
		t.Pull = o.Pull
	}
	if o.Group != "" {
		t.Group = o.Group
	}
	if o.Axes != 0 {
		t.Axes = o.Axes
	}
	if o.Classes != 0 {
		t.Classes = o.Classes
	}
	if o.Settings != "" {
		t.Settings = o.Settings
	}
	return t
}

// Pull is what moves the weights of a learned metric besides the gradient, see optim.Pull of package train/optim.
type Pull struct {
	Decay    float64 // decoupled decay; 0: that of other parameters
	Identity bool    // toward the identity, else 0
	L1       float64 // of the weights off the diagonal
	Side     int     // weights are blocks of Side x Side numbers, or with 1 a diagonal
}

// Groups that optimizer.no_decay may name.
const (
	GroupBias        = "bias"
	GroupTemperature = "temperature"
	GroupMetric      = "metric"
)

// Scope is a prefix of parameter names over Weights, with traits that all below it have.
type Scope struct {
	weights Weights
	prefix  string
	traits  Traits
	mark    func()
	tap     Tap
	tunes   *tuning // of the transformers within, nil without
	tuned   *tuning // of the one that this is a part of, nil without
}

// NewScope returns the scope with all names of w.
func NewScope(w Weights) Scope { return Scope{weights: w} }

// In returns the scope of names below name.
func (s Scope) In(name string) Scope {
	s.prefix += name + "/"
	return s
}

// As returns s with further traits.
func (s Scope) As(t Traits) Scope {
	s.traits = s.traits.over(t)
	return s
}

// Marked returns s with a function that encoders call before and after they add the
// nodes of a transformer block. The results of such a block depend on its input and
// the parameters alone, so that they can be computed again instead of kept.
func (s Scope) Marked(mark func()) Scope {
	s.mark = mark
	return s
}

// block calls mark, if there is one, before and after build.
func (s Scope) block(build func()) {
	if s.mark != nil {
		s.mark()
		defer s.mark()
	}
	build()
}

// Layer returns the scope of layer i below name: name/00, name/01, ...
func (s Scope) Layer(name string, i int) Scope { return s.In(fmt.Sprintf("%s/%02d", name, i)) }

// LayerOf returns the number of the layer that a parameter belongs to, block i of blocks/ or layer i of layers/; false
// for one of no layer.
func LayerOf(name string) (int, bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		if part == "blocks" || part == "layers" {
			n, err := strconv.Atoi(parts[i+1])
			return n, err == nil
		}
	}
	return 0, false
}

// Param returns a parameter of the scope.
func (s Scope) Param(name string, init Init, shape ...int) *gorgonia.Node {
	t := s.traits
	if s.tuned != nil && s.tuned.trains(s.prefix+name, t) {
		t.Locked = false
	}
	return s.weights.Param(s.prefix+name, t, init, shape...)
}

// bias returns the parameter bias of n values.
func (s Scope) bias(init Init, n int) *gorgonia.Node {
	return s.As(Traits{Group: GroupBias}).Param("bias", init, n)
}

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
