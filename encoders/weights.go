package encoders

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// Weights hands out parameters as nodes of the graph under construction.
type Weights interface {
	// Param returns the node of the parameter with this full name. The first
	// request fixes its shape and how it is initialised; a later request with
	// another shape is a programmer error and panics.
	Param(name string, init Init, shape ...int) *gorgonia.Node
}

// Scope is a prefix of parameter names over Weights.
type Scope struct {
	weights Weights
	prefix  string
	mark    func()
}

// NewScope returns the scope with all names of w.
func NewScope(w Weights) Scope { return Scope{weights: w} }

// In returns the scope of names below name.
func (s Scope) In(name string) Scope { return Scope{s.weights, s.prefix + name + "/", s.mark} }

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

// Param returns a parameter of the scope.
func (s Scope) Param(name string, init Init, shape ...int) *gorgonia.Node {
	return s.weights.Param(s.prefix+name, init, shape...)
}
