package relation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// planLoss is the loss with plans that have converged.
func planLoss(eps, target float64) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		loss, _ := PlanDivergence(PlanArgs{Scores: ns[0], Target: ns[1], Epsilon: eps, TargetEpsilon: target, Iterations: 5000, Tolerance: 1e-12})
		return loss
	}
}

// TestPlanDivergenceFuzz settles the gradient, and by which eps it is divided, by finite
// differences.
func TestPlanDivergenceFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	for range 24 {
		n, m := 1+r.IntN(5), 1+r.IntN(5)
		eps, target := .3+r.Float64(), .3+r.Float64()
		optest.CheckGrad(t, planLoss(eps, target), []int{0}, 1e-2, 1e-2, optest.F32s(r, "scores", n, m), optest.F32s(r, "target", n, m))
	}
}

// TestPlanDivergenceVectors are values by hand.
func TestPlanDivergenceVectors(t *testing.T) {
	// With similarities a on the diagonal and 0 beside it the plan of two and two items is
	// (p, 1-p; 1-p, p)/2 with p = sigmoid(a/eps).
	const eps, a = .5, 1.
	scores := optest.In("scores", []int{2, 2}, []float32{0, 0, 0, 0})
	target := optest.In("target", []int{2, 2}, []float32{a, 0, 0, a})
	p := 1 / (1 + math.Exp(-a/eps))
	want := p*math.Log(2*p) + (1-p)*math.Log(2*(1-p))
	optest.Near(t, "loss", optest.Eval(t, planLoss(eps, eps), scores, target).F32, []float32{float32(want)}, 1e-6)
	grads, _ := optest.Gradients(t, planLoss(eps, eps), []int{0}, scores, target)
	g := float32((.5 - p) / 2 / eps)
	optest.Near(t, "gradient", grads[0], []float32{g, -g, -g, g}, 1e-6)
	// What is added to a row or a column changes no plan.
	shifted := optest.In("scores", []int{2, 2}, []float32{a + 3, 1, 2, a})
	optest.Near(t, "shifted", optest.Eval(t, planLoss(eps, eps), shifted, target).F32, []float32{0}, 1e-6)
}

// TestPlanOff: the second result says how far the plan of the trained space is from its end.
func TestPlanOff(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 1))
	scores, flat := optest.F32s(r, "scores", 6, 5), optest.In("target", []int{6, 5}, make([]float32, 30))
	off := func(iterations int, in ...optest.Input) float32 {
		return optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			_, off := PlanDivergence(PlanArgs{Scores: ns[0], Target: ns[1], Epsilon: .05, TargetEpsilon: 1, Iterations: iterations, Tolerance: 1e-5})
			return off
		}, in...).F32[0]
	}
	if few, many := off(2, scores, flat), off(5000, scores, flat); few < 1e-2 || many >= 1e-5 {
		t.Errorf("off by %v after 2 iterations and %v after many", few, many)
	}
}

// TestPlanDivergenceNotFinite: similarities of either space that are not finite give a loss that is not, but for a pair of the
// target that has no mass.
func TestPlanDivergenceNotFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 1))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for k := range 2 {
			in := []optest.Input{optest.F32s(r, "scores", 3, 4), optest.F32s(r, "target", 3, 4)}
			in[k].Floats()[5] = float32(v)
			loss := float64(optest.Eval(t, planLoss(.5, .5), in...).F32[0])
			if finite := !math.IsNaN(loss) && !math.IsInf(loss, 0); finite != (k == 1 && math.IsInf(v, -1)) {
				t.Errorf("%v in the %s gives a loss of %v", v, in[k].Name, loss)
			}
		}
	}
}
