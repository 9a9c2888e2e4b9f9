package relation

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGolden compares losses and gradients with torch's, from tools/goldens/relation.py.
func TestGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	of := func(build func(ns gorgonia.Nodes) *gorgonia.Node) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node { return build(gorgonia.Nodes{g("scores"), g("target")}) }
	}
	optest.CheckTorch(t, "relation.json", map[string]func(get) *gorgonia.Node{
		"plans": of(planLoss(.5, .5)), "plans of two eps": of(planLoss(.25, 1)), "plans, sharp target": of(planLoss(1, .125)),
		"one hop": of(hopLoss(.5, .5, 1)), "three hops": of(hopLoss(.5, .25, 3)), "four hops": of(hopLoss(1, 1, 4)),
	})
}

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	m := optest.NewHashInputs().M
	variant := func(build func(ns gorgonia.Nodes) *gorgonia.Node) func() *gorgonia.Node {
		return func() *gorgonia.Node { return build(gorgonia.Nodes{m, m}) }
	}
	plan := func(a PlanArgs) func() *gorgonia.Node {
		a.Scores, a.Target = m, m
		return func() *gorgonia.Node { n, _ := PlanDivergence(a); return n }
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"plans": {
			plan(PlanArgs{Epsilon: 1, TargetEpsilon: 1, Iterations: 1}), plan(PlanArgs{Epsilon: 2, TargetEpsilon: 1, Iterations: 1}),
			plan(PlanArgs{Epsilon: 1, TargetEpsilon: 2, Iterations: 1}), plan(PlanArgs{Epsilon: 1, TargetEpsilon: 1, Iterations: 2}),
			plan(PlanArgs{Epsilon: 1, TargetEpsilon: 1, Iterations: 1, Tolerance: 1}),
		},
		"hops": {variant(hopLoss(1, 1, 1)), variant(hopLoss(2, 1, 1)), variant(hopLoss(1, 2, 1)), variant(hopLoss(1, 1, 2))},
	})
}

// TestCases: see optest.CheckCases.
func TestCases(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 1))
	wide := func(n, m int) []optest.Input {
		return []optest.Input{optest.F32s(r, "scores", n, m), optest.F32s(r, "target", n, m)}
	}
	optest.CheckCases(t, []optest.Case{
		{Name: "plans", Inputs: wide(130, 170), WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			loss, _ := PlanDivergence(PlanArgs{Scores: ns[0], Target: ns[1], Epsilon: .1, TargetEpsilon: .2, Iterations: 10})
			return loss
		}},
		{Name: "one hop", Inputs: wide(150, 150), WRT: []int{0}, Build: hopLoss(.1, .2, 1)},
		{Name: "three hops", Inputs: wide(150, 150), WRT: []int{0}, Build: hopLoss(.1, .2, 3), GEMM: true},
	})
}

// TestBuildErrors gives the ops operands and settings that do not fit.
func TestBuildErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 1))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "wide", 3, 4), optest.F32s(r, "square", 3, 3), optest.F32s(r, "v", 3)})
	wide, square, v := ns[0], ns[1], ns[2]
	for want, build := range map[string]func(){
		"want similarities (N, M)":                  func() { planLoss(1, 1)(gorgonia.Nodes{v, v}) },
		"target must have shape (3, 4) (got (3, 3)": func() { planLoss(1, 1)(gorgonia.Nodes{wide, square}) },
		"both eps > 0":                              func() { planLoss(1, 0)(gorgonia.Nodes{wide, wide}) },
		"rows with themselves":                      func() { hopLoss(1, 1, 1)(gorgonia.Nodes{wide, wide}) },
		"at least one hop (got 1, 1 and 0)":         func() { hopLoss(1, 1, 0)(gorgonia.Nodes{square, square}) },
		"both temperatures > 0":                     func() { hopLoss(-1, 1, 1)(gorgonia.Nodes{square, square}) },
	} {
		optest.BuildError(t, want, want, build)
	}
}
