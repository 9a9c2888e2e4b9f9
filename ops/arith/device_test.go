package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestCUDA(t *testing.T) {
	cases := append(arithCases(), deviceCases()...)
	if !cudatest.Emulated(cudatest.Open(t)) {
		cases = append(cases, largeCases()...)
	}
	optest.CheckCUDA(t, cases)
}

// deviceCases are shapes that kernels take another way: scalars, sizes that are no multiple of four, many arrays.
func deviceCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(41, 1))
	s, odd := optest.In("s", nil, []float32{-.7}), optest.F32s(r, "odd", 7, 149)
	var many, scalars []optest.Input
	var weights []float32
	var wrt []int
	for i := range 17 {
		name := string(rune('a' + i))
		many, scalars = append(many, optest.F32s(r, name, 5, 77)), append(scalars, optest.F32s(r, name))
		weights, wrt = append(weights, r.Float32()), append(wrt, i)
	}
	add := func(name string, in []optest.Input, wrt []int, build func(ns gorgonia.Nodes) *gorgonia.Node) {
		cases = append(cases, optest.Case{Name: name, Inputs: in, WRT: wrt, Build: build})
	}
	add("many arrays", many, wrt, func(ns gorgonia.Nodes) *gorgonia.Node { return Combine(weights, ns...) })
	add("many scalars", scalars, wrt, func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum(weights, ns...) })
	add("in place", []optest.Input{odd, s}, []int{0, 1}, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Square(DivScalar(Add(Square(ns[0]), MulExp(ns[0], ns[1])), ns[1]))
	})
	add("scalars", []optest.Input{scalars[0], s}, []int{0, 1}, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Add(Mean(Square(DivScalar(ns[0], ns[1]))), Sum(MulScalar(ns[0], ns[1])))
	})
	for _, n := range []int{1, 3, 37, 500} { // groups of columns
		for _, groups := range []int{1, 5, 70} {
			in := []optest.Input{optest.F32s(r, "x", 6, groups*n), optest.F32s(r, "y", 6, groups*n)}
			add("sum products", in, []int{0, 1}, func(ns gorgonia.Nodes) *gorgonia.Node { return SumProducts(ns[0], ns[1], n) })
			in = []optest.Input{optest.F32s(r, "x", 6, groups), optest.F32s(r, "y", 6, n)}
			add("outer", in, []int{0, 1}, func(ns gorgonia.Nodes) *gorgonia.Node { return Outer(ns[0], ns[1]) })
		}
	}
	return cases
}

// largeCases take many blocks.
func largeCases() []optest.Case {
	r := rand.New(rand.NewPCG(41, 2))
	x, y, s := optest.F32s(r, "x", 1025, 767), optest.F32s(r, "y", 1025, 767), optest.In("s", nil, []float32{.07})
	in := []optest.Input{x, y, s}
	return []optest.Case{
		{Name: "large sums", Inputs: in, WRT: []int{0, 1, 2}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Add(Mean(Square(DivScalar(Add(ns[0], ns[1]), ns[2]))), Mean(MulScalar(Square(ns[0]), ns[2])))
		}},
		{Name: "large products", Inputs: in, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Combine([]float32{1, 2}, SumProducts(ns[0], ns[1], 1), SumProducts(ns[1], ns[1], 1))
		}},
	}
}
