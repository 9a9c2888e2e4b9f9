package relation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func hopLoss(temperature, target float32, hops int) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		return HopDivergence(HopArgs{Scores: ns[0], Target: ns[1], Temperature: temperature, TargetTemperature: target, Hops: hops})
	}
}

// walk is the softmax of rows of s (n, n)/temperature.
func walk(s []float32, n int, temperature float64) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		var sum float64
		for j := range n {
			out[i*n+j] = math.Exp(float64(s[i*n+j]) / temperature)
			sum += out[i*n+j]
		}
		for j := range n {
			out[i*n+j] /= sum
		}
	}
	return out
}

// definition is the loss in float64.
func definition(s, t []float32, n int, temperature, target float64, hops int) (loss float64) {
	q, p := walk(s, n, temperature), walk(t, n, target)
	step := func(x, y []float64) []float64 {
		out := make([]float64, n*n)
		for i := range out {
			for k := range n {
				out[i] += x[i/n*n+k] * y[k*n+i%n]
			}
		}
		return out
	}
	ql, pl := q, p
	for l := range hops {
		if l > 0 {
			ql, pl = step(ql, q), step(pl, p)
		}
		for i, a := range pl {
			b := ql[i]
			loss += (a*math.Log(2*a/(a+b)) + b*math.Log(2*b/(a+b))) / 2
		}
	}
	return loss / float64(n*hops)
}

// TestHopDivergenceFuzz compares with the definition and with finite differences.
func TestHopDivergenceFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 1))
	for range 24 {
		n, hops := 1+r.IntN(6), 1+r.IntN(4)
		temperature, target := .3+r.Float32(), .3+r.Float32()
		s, fixed := optest.F32s(r, "scores", n, n), optest.F32s(r, "target", n, n)
		build := hopLoss(temperature, target, hops)
		want := definition(s.Floats(), fixed.Floats(), n, float64(temperature), float64(target), hops)
		optest.Near(t, "loss", optest.Eval(t, build, s, fixed).F32, []float32{float32(want)}, 1e-5)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-2, s, fixed)
	}
}

// TestHopDivergenceVectors are values by hand.
func TestHopDivergenceVectors(t *testing.T) {
	in := func(name string, x ...float32) optest.Input { return optest.In(name, []int{2, 2}, x) }
	// Rows that differ by 200 temperatures: one walk stays, the other one leaves, log 2 apart.
	stays, leaves := in("scores", 20, 0, 0, 20), in("target", 0, 20, 20, 0)
	optest.Near(t, "apart", optest.Eval(t, hopLoss(.1, .1, 1), stays, leaves).F32, []float32{math.Ln2}, 1e-6)
	// Two steps of the one that leaves come back: of two hops only the first is apart.
	optest.Near(t, "two hops", optest.Eval(t, hopLoss(.1, .1, 2), stays, leaves).F32, []float32{math.Ln2 / 2}, 1e-6)
	grads, _ := optest.Gradients(t, hopLoss(.1, .1, 2), []int{0}, stays, leaves)
	for _, g := range grads[0] {
		if g-g != 0 {
			t.Errorf("gradient %v of masses that underflow", grads[0])
		}
	}
	// One walk at two temperatures, and what is added to a row.
	optest.Near(t, "equal", optest.Eval(t, hopLoss(.5, 1, 3), in("scores", 3.5, 3, 1, 1.25), in("target", 1, 0, 0, .5)).F32, []float32{0}, 1e-7)
}
