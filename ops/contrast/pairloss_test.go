package contrast

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// pairLosses are the losses over square scores: of the rows, and by their definition for one
// row of scores with the columns that are negatives.
var pairLosses = map[string]struct {
	build func(s, ids, hardest *gorgonia.Node) *gorgonia.Node
	naive func(s []float64, own int, negative []bool) float64
}{
	"hinge": {
		func(s, ids, hardest *gorgonia.Node) *gorgonia.Node { return Hinge(s, ids, hardest, .25) },
		func(s []float64, own int, negative []bool) (worst float64) {
			for j, v := range s {
				if negative[j] {
					worst = max(worst, .25+v-s[own])
				}
			}
			return worst
		},
	},
	"hinge, all": {
		func(s, ids, _ *gorgonia.Node) *gorgonia.Node { return Hinge(s, ids, zero(s.Graph()), .25) },
		func(s []float64, own int, negative []bool) (sum float64) {
			for j, v := range s {
				if negative[j] {
					sum += max(0, .25+v-s[own])
				}
			}
			return sum
		},
	},
	"poly": {
		func(s, ids, _ *gorgonia.Node) *gorgonia.Node { return Poly(s, ids, .2) },
		func(s []float64, own int, negative []bool) (sum float64) {
			p, n := s[own], math.Inf(-1)
			for j, v := range s {
				if negative[j] && v+.2 > p {
					n = max(n, v)
				}
			}
			if math.IsInf(n, -1) || p >= 1-1e-5 {
				return 0
			}
			return max(0, .2*p*p-.7*p+.5) + max(0, .9*n*n-.4*n+.03)
		},
	},
	"cmpm": {
		func(s, ids, _ *gorgonia.Node) *gorgonia.Node { return CMPM(s, ids, 3) },
		func(s []float64, _ int, negative []bool) (sum float64) {
			var all, matches float64
			for j, v := range s {
				all += math.Exp(3 * v)
				if !negative[j] {
					matches++
				}
			}
			for j, v := range s {
				p, q := math.Exp(3*v)/all, 0.
				if !negative[j] {
					q = 1 / matches
				}
				sum += p * math.Log(p/(q+1e-8))
			}
			return sum
		},
	},
}

// zero is a scalar input that no test binds to anything else.
func zero(g *gorgonia.ExprGraph) *gorgonia.Node {
	for _, n := range g.AllNodes() {
		if n.Name() == "zero" {
			return n
		}
	}
	panic("no zero")
}

// squareInputs are scores (B, B), ids, a scalar that is 1 and one that is 0.
func squareInputs(s []float32, ids []int32) []optest.Input {
	n := len(ids)
	return []optest.Input{optest.In("scores", []int{n, n}, s), optest.I32s("ids", ids, n), optest.In("one", nil, []float32{1}), optest.In("zero", nil, []float32{0})}
}

// TestPairLosses compares random problems, with ids that repeat and without, with the
// definition and with its differences; all rows of one id have no negative.
func TestPairLosses(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(pairLosses)) {
		l, smooth := pairLosses[name], 0
		r := rand.New(rand.NewPCG(63, uint64(len(name))))
		for i := range 60 {
			n := 1 + r.IntN(7)
			ids, s := optest.RandomInts(r, n, []int{1, 3, 100}[i%3]), optest.F32s(r, "", n, n).Data.([]float32)
			if i%5 == 0 {
				s[0] = 1.5 // a learned metric is above 1
			}
			build := func(ns gorgonia.Nodes) *gorgonia.Node {
				if i%2 == 0 {
					return l.build(ns[0], nil, ns[2])
				}
				return l.build(ns[0], ns[1], ns[2])
			}
			naive := func(s []float32) (sum float64) {
				for i2 := range n {
					row, negative := make([]float64, n), make([]bool, n)
					for j := range n {
						row[j] = float64(s[i2*n+j])
						negative[j] = i2 != j && (i%2 == 0 || ids[i2] != ids[j])
					}
					sum += l.naive(row, i2, negative)
				}
				return sum
			}
			in := squareInputs(s, ids)
			optest.Near(t, name, optest.Eval(t, build, in...).F32, []float32{float32(naive(s))}, 1e-5)
			if name == "cmpm" || isSmooth(naive, s, 2e-3, 4e-5) { // differences over a margin or a change of the hardest are no gradient
				smooth++
				optest.CheckGrad(t, build, []int{0}, 1e-3, 2e-2, in...)
			}
			if t.Failed() {
				t.Fatalf("%s: problem %d: ids %v, scores %v", name, i, ids, s)
			}
		}
		if smooth < 40 {
			t.Errorf("%s: the gradients of %d problems of 60 were compared, want at least 40", name, smooth)
		}
	}
}

// isSmooth says whether f is nearly linear within h of each element of x: no second difference is above most.
func isSmooth(f func(x []float32) float64, x []float32, h float32, most float64) bool {
	at := f(x)
	for i, v := range x {
		x[i] = v + h
		above := f(x)
		x[i] = v - h
		below := f(x)
		x[i] = v
		if math.Abs(above+below-2*at) > most {
			return false
		}
	}
	return true
}

// bothWays adds the rows and the columns up.
func bothWays(s *gorgonia.Node, rows func(s *gorgonia.Node) *gorgonia.Node) *gorgonia.Node {
	return arith.WeightedSum([]float32{1, 1}, rows(s), rows(layout.Transpose(s)))
}

// TestPairLossVectors: values of one matrix that were worked out apart.
func TestPairLossVectors(t *testing.T) {
	in := squareInputs([]float32{.8, .7, .1, .2, .5, .6, .65, .3, .4}, []int32{0, 1, 2})
	for _, c := range []struct {
		name string
		want float32
		rows func(ns gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node
	}{
		{"hinge", 1.7, func(ns gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node { return Hinge(s, nil, ns[2], .2) }},
		{"hinge, all", 1.8, func(ns gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node { return Hinge(s, nil, ns[3], .2) }},
		{"poly", 3 * .650167, func(_ gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node { return Poly(s, nil, .2) }},
		{"cmpm", 3 * 21.405664, func(_ gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node { return CMPM(s, nil, 1) }},
		{"cmpm, scale 10", 3 * 22.832554, func(_ gorgonia.Nodes, s *gorgonia.Node) *gorgonia.Node { return CMPM(s, nil, 10) }},
	} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return bothWays(ns[0], func(s *gorgonia.Node) *gorgonia.Node { return c.rows(ns, s) })
		}, in...).F32
		optest.Near(t, c.name, got, []float32{c.want}, 1e-6)
	}
}

// TestPairLossGolden compares losses and gradients with torch, from tools/goldens/pairloss.py.
func TestPairLossGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	both := func(rows func(g get, s *gorgonia.Node) *gorgonia.Node) func(g get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			return bothWays(g("scores"), func(s *gorgonia.Node) *gorgonia.Node { return rows(g, s) })
		}
	}
	hinge := both(func(g get, s *gorgonia.Node) *gorgonia.Node { return Hinge(s, g("ids"), g("hardest"), .2) })
	poly := both(func(g get, s *gorgonia.Node) *gorgonia.Node { return Poly(s, g("ids"), .2) })
	cmpm := both(func(g get, s *gorgonia.Node) *gorgonia.Node { return CMPM(s, g("ids"), 4) })
	optest.CheckTorch(t, "pairloss.json", map[string]func(get) *gorgonia.Node{
		"hinge": hinge, "hinge all": hinge, "hinge ids": hinge, "poly": poly, "cmpm": cmpm, "cmpm ids": cmpm,
	})
}

// pairLossCases are rows of opCases.
func pairLossCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(63, 2))
	in := squareInputs(optest.F32s(r, "", 90, 90).Data.([]float32), optest.RandomInts(r, 90, 60))
	for name, l := range pairLosses {
		cases = append(cases, optest.Case{Name: name, Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return l.build(ns[0], ns[1], ns[2]) }})
	}
	return cases
}

// TestPairLossHash: variants that differ in one argument are different nodes, in the gradient
// too.
func TestPairLossHash(t *testing.T) {
	_, ns := optest.Nodes(squareInputs(make([]float32, 9), make([]int32, 3)))
	s, ids, one := ns[0], ns[1], ns[2]
	backward := func(n *gorgonia.Node, in ...*gorgonia.Node) func() *gorgonia.Node {
		return func() *gorgonia.Node { return op.Of(n).Grad(in, n, one)[0] }
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"losses": {
			func() *gorgonia.Node { return Hinge(s, nil, one, .2) }, func() *gorgonia.Node { return Hinge(s, ids, one, .2) },
			func() *gorgonia.Node { return Hinge(s, nil, one, .3) },
			func() *gorgonia.Node { return Poly(s, nil, .2) }, func() *gorgonia.Node { return Poly(s, ids, .2) }, func() *gorgonia.Node { return Poly(s, nil, .3) },
			func() *gorgonia.Node { return CMPM(s, nil, 1) }, func() *gorgonia.Node { return CMPM(s, ids, 1) }, func() *gorgonia.Node { return CMPM(s, nil, 2) },
		},
		"gradients": {
			backward(Hinge(s, nil, one, .2), s, one), backward(Hinge(s, ids, one, .2), s, one, ids), backward(Hinge(s, nil, one, .3), s, one),
			backward(Poly(s, nil, .2), s), backward(Poly(s, nil, .3), s), backward(CMPM(s, nil, 1), s), backward(CMPM(s, ids, 1), s, ids), backward(CMPM(s, nil, 2), s),
		},
	})
}

func TestPairLossErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(63, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "wide", 2, 3), optest.F32s(r, "s", 2, 2), optest.I32s("ids", make([]int32, 3), 3), optest.F32s(r, "one")})
	optest.BuildError(t, "poly", "want scores (B, B)", func() { Poly(ns[0], nil, .2) })
	optest.BuildError(t, "cmpm", "ids must have shape (2)", func() { CMPM(ns[1], ns[2], 1) })
	optest.BuildError(t, "hinge", "operand 1 is nil", func() { Hinge(ns[1], nil, nil, .2) })
	optest.BuildError(t, "hinge", "hardest must have shape ()", func() { Hinge(ns[1], nil, ns[1], .2) })
}
