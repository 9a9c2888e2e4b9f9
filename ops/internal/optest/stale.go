package optest

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/geoalign/geoalign/internal/check"
)

// StaleCase is an op that is run on one set of integers and then on another.
type StaleCase struct {
	Name          string
	Build         func(ns gorgonia.Nodes) *gorgonia.Node
	Fixed         []Input // the first WRT of them have gradients that count
	WRT           int
	Before, After []Input
}

// CheckStale wants from each second run the result of a fresh program, so everything that
// it does not compute must be cleared.
func CheckStale(t *testing.T, cases []StaleCase) {
	t.Helper()
	for _, c := range cases {
		run := func(sets ...[]Input) (all []float32) {
			inputs := slices.Concat(c.Fixed, sets[0])
			g, ns := Nodes(inputs)
			out := c.Build(ns)
			cost := out
			if len(out.Shape()) > 0 {
				cost = Dot(out, out)
			}
			grads := check.Get(gorgonia.Grad(cost, ns[:c.WRT]...))(t)
			outputs := append(gorgonia.Nodes{out}, grads...)
			m := Machine(t, g, ns, inputs, outputs...)
			for _, set := range sets {
				for i, in := range set {
					check.OK(t, m.SetInput(ns[len(c.Fixed)+i], in.Data))
				}
				check.OK(t, m.RunAll())
			}
			for _, n := range outputs {
				a := check.Get(m.Value(n))(t)
				all = append(all, a.F32...)
			}
			return all
		}
		if got, want := run(c.Before, c.After), run(c.After); !slices.Equal(got, want) {
			t.Errorf("%s: second run gives %v, a fresh program %v", c.Name, got, want)
		}
	}
}
