package optest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// Elements is an op element by element: its proofs follow from what it is of numbers.
type Elements struct {
	Name     string
	Operands int
	Scalars  []int // operands that are scalars
	// WRT are the operands with a gradient; nil: all.
	WRT   []int
	Build func(ns gorgonia.Nodes) *gorgonia.Node
	Of    func(x []float64) float64
	// Tol is how far from Of values may be, relative to the largest; 0: 2e-6.
	Tol float64
	// From and To are where operands are drawn from, unless both are 0: [-1, 1).
	From, To float32
	// Bend is where the op has no derivative: operands of finite differences stay away from it.
	Bend float32
}

// inputs draws operands.
func (e Elements) inputs(r *rand.Rand, shape ...int) (in []Input) {
	for i := range e.Operands {
		s := shape
		if slices.Contains(e.Scalars, i) {
			s = nil
		}
		x := F32s(r, "x"+string(rune('a'+i)), s...)
		for j, v := range x.Floats() {
			if e.From != e.To {
				x.Floats()[j] = e.From + (v+1)/2*(e.To-e.From)
			}
			if d := x.Floats()[j] - e.Bend; e.Bend != 0 && d > -.02 && d < .02 {
				x.Floats()[j] = e.Bend + .5
			}
		}
		in = append(in, x)
	}
	return in
}

// wrt are the operands with a gradient.
func (e Elements) wrt() []int {
	if e.WRT != nil {
		return e.WRT
	}
	all := make([]int, e.Operands)
	for i := range all {
		all[i] = i
	}
	return all
}

// CheckElements compares ops with what they are of numbers and their gradients with finite differences, for scalars
// and for arrays of several shapes.
func CheckElements(t *testing.T, list []Elements) {
	r := rand.New(rand.NewPCG(1, 41))
	for _, e := range list {
		t.Run(e.Name, func(t *testing.T) {
			for _, shape := range append([][]int{{}, {5}, {2, 3, 4}, {7, 3000}}, RandomShapes(r, 4, 9, 40)...) {
				in := e.inputs(r, shape...)
				want := make([]float32, len(in[0].Floats()))
				x := make([]float64, e.Operands)
				for i := range want {
					for k, operand := range in {
						x[k] = float64(operand.Floats()[i%len(operand.Floats())])
					}
					want[i] = float32(e.Of(x))
				}
				tol := e.Tol
				if tol == 0 {
					tol = 2e-6
				}
				Near(t, e.Name, Eval(t, e.Build, in...).F32, want, tol)
				CheckGrad(t, e.Build, e.wrt(), 1e-2, 4e-3, in...)
			}
		})
	}
}

// ElementCases are cases of the ops, of operands that are large enough for several threads and of odd ones.
func ElementCases(list []Elements) (cases []Case) {
	r := rand.New(rand.NewPCG(11, 42))
	for _, e := range list {
		for _, s := range []struct {
			name  string
			shape []int
		}{{"", []int{120, 321}}, {" odd", []int{7, 149}}, {" one", []int{1}}} {
			cases = append(cases, Case{Name: e.Name + s.name, Inputs: e.inputs(r, s.shape...), WRT: e.wrt(), Build: e.Build})
		}
	}
	return cases
}
