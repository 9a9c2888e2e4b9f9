package relation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/relation/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// TestCUDA walks among few and many rows, one step and several.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 1))
	sizes := [][2]int{{1, 1}, {2, 3}, {31, 1}, {70, 2}, {64, 4}}
	if !cudatest.Emulated(cudatest.Open(t)) {
		sizes = append(sizes, [2]int{1024, 3})
	}
	var cases []optest.Case
	for _, s := range sizes {
		n, hops := s[0], s[1]
		cases = append(cases, optest.Case{Name: fmt.Sprintf("%d hops of %d rows", hops, n), WRT: []int{0},
			Inputs: []optest.Input{optest.F32s(r, "scores", n, n), optest.F32s(r, "target", n, n)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return HopDivergence(HopArgs{Scores: ns[0], Target: ns[1], Temperature: .5, TargetTemperature: .7, Hops: hops})
			}})
	}
	optest.CheckCUDA(t, cases, "times", "mul scalar", "combine")
}

// planCase compares the loss and its gradient, or without gradient the loss beside how far off the plan is, which says when its
// rounds ended.
func planCase(name string, a PlanArgs, gradient bool, in ...optest.Input) optest.Case {
	c := optest.Case{Name: name, Inputs: in, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		a.Scores, a.Target = ns[0], ns[1]
		loss, off := PlanDivergence(a)
		return arith.Combine([]float32{1, 1e3}, loss, off)
	}}
	if gradient {
		c.WRT = []int{0}
		c.Build = func(ns gorgonia.Nodes) *gorgonia.Node {
			a.Scores, a.Target = ns[0], ns[1]
			loss, _ := PlanDivergence(a)
			return loss
		}
	}
	return c
}

// TestPlansOnCUDA makes plans in one launch, in two a round, and in two for each of some rounds and one for the others: few rounds and as many as a plan needs, which then ends before the
// most that there may be, eps so small that scales leave the range of numbers, and plans of one item, which are all equal.
func TestPlansOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 2))
	sizes := [][2]int{{2, 2}, {3, 70}, {70, 3}, {33, 47}, {130, 96}}
	if !cudatest.Emulated(cudatest.Open(t)) {
		sizes = append(sizes, [2]int{127, 129}, [2]int{1024, 900})
	}
	args := func(eps, target float64, rounds int, tolerance float64) PlanArgs {
		return PlanArgs{Epsilon: eps, TargetEpsilon: target, Iterations: rounds, Tolerance: tolerance}
	}
	var cases []optest.Case
	for _, s := range sizes {
		in := []optest.Input{optest.F32s(r, "scores", s[0], s[1]), optest.F32s(r, "target", s[0], s[1])}
		for _, a := range []PlanArgs{args(.1, .3, 1, 1e-4), args(.1, .3, 4, 0), args(.3, .7, 60, 1e-4)} {
			name := fmt.Sprintf("%v, %d rounds", s, a.Iterations)
			cases = append(cases, planCase(name, a, true, in...), planCase(name+", off", a, false, in...))
		}
	}
	for _, s := range [][2]int{{1, 1}, {1, 5}, {5, 1}} {
		in := []optest.Input{optest.F32s(r, "scores", s[0], s[1]), optest.F32s(r, "target", s[0], s[1])}
		cases = append(cases, planCase(fmt.Sprintf("%v", s), args(.1, .3, 1, 0), false, in...))
	}
	far := make([]float32, 20*20)
	for i := range far {
		far[i] = float32((i/20)*(i%20)) / 20 // whoever takes the last item is far above all others
		if i%20 == 5 {
			far[i]-- // and this one far below
		}
	}
	in := []optest.Input{optest.In("scores", []int{20, 20}, far), optest.F32s(r, "target", 20, 20)}
	cases = append(cases, planCase("far", args(2e-4, .2, 120, 0), true, in...), planCase("far, off", args(2e-4, .2, 120, 0), false, in...))
	for name, v := range map[string]float64{"NaN": math.NaN(), "Inf": math.Inf(1), "-Inf": math.Inf(-1)} {
		for k := range 2 {
			in := []optest.Input{optest.F32s(r, "scores", 3, 4), optest.F32s(r, "target", 3, 4)}
			in[k].Floats()[5] = float32(v)
			cases = append(cases, planCase(fmt.Sprintf("%s in the %s", name, in[k].Name), args(.1, .3, 5, 0), true, in...))
		}
	}
	onHost := []string{"mul scalar", "combine"}
	optest.CheckCUDA(t, cases, onHost...)
	small, launched := oncuda.SmallPlan, oncuda.LaunchedRounds
	t.Cleanup(func() { oncuda.SmallPlan, oncuda.LaunchedRounds = small, launched })
	oncuda.SmallPlan = 0
	t.Run("launches", func(t *testing.T) { optest.CheckCUDA(t, cases, onHost...) })
	oncuda.LaunchedRounds = 4
	t.Run("launches, then a block", func(t *testing.T) { optest.CheckCUDA(t, cases, onHost...) })
}
