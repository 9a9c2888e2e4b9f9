package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

// scoresAndGradient runs the op: the scores, and the gradient of f for the gradient dy of
// the scores.
func (k *geoCase) scoresAndGradient(t testing.TB, dy []float32) (scores, grad []float32) {
	t.Helper()
	in := append(k.inputs(), input{"dy", []int{k.b, k.n}, dy})
	g, ns := nodes(in)
	s := k.build(ns)
	grads, err := gorgonia.Grad(dotForTest(s, ns[len(ns)-1]), ns[0])
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t, g, ns, in, s, grads[0])
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*gorgonia.Node{s, grads[0]} {
		a, err := m.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		if scores == nil {
			scores = append(scores, a.F32...)
		} else {
			grad = append(grad, a.F32...)
		}
	}
	return scores, grad
}

// check compares scores and gradient with the definition.
func (k *geoCase) check(t testing.TB, r *rand.Rand, tol float64) {
	t.Helper()
	dy := f32s(r, "dy", k.b, k.n).data.([]float32)
	scores, grad := k.scoresAndGradient(t, dy)
	for i, want := range k.oracle().scores() {
		if !(math.Abs(float64(scores[i]-want)) <= tol) {
			t.Fatalf("score %d of row %d: got %v, want %v", i%k.n, i/k.n, scores[i], want)
		}
	}
	if want := k.oracle().gradient(dy); !close64(grad, want, 10*tol) {
		t.Errorf("gradient: got %v, want %v", grad, want)
	}
}

// TestGeodesicFuzz compares random cases of every combination of flags, shapes, wraps and
// counts with the definition and with its finite differences.
func TestGeodesicFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for i := range 400 {
		k := randomGeoCase(r)
		if i%8 == 0 {
			k.count = 0
		}
		k.check(t, r, 2e-5)
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, k)
		}
	}
}

// close64 says whether got and want agree to tol, relative to the largest of want or 1.
func close64(got, want []float32, tol float64) bool {
	largest := 1.0
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i]-v)) <= tol*largest) {
			return false
		}
	}
	return len(got) == len(want)
}
