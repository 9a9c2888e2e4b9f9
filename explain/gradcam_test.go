package explain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFormulas are two tokens of two channels by hand.
func TestFormulas(t *testing.T) {
	values, grads := []float32{1, 2, 3, -4}, []float32{2, -1, -1, -2}
	for _, c := range []struct {
		name string
		f    func(values, grads []float32, n, d int) []float64
		want []float64
	}{
		{"elementwise", Elementwise, []float64{1*2 - 2, -3 + 8}},
		{"channels", Channels, []float64{2. / 2, 8. / 2}},
		{"pooled", Pooled, []float64{.5*1 - 1.5*2, .5*3 + 1.5*4}},
	} {
		if got := c.f(values, grads, 2, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := Positive([]float64{-1, 0, 2}); !slices.Equal(got, []float64{0, 0, 2}) {
		t.Errorf("positive: %v", got)
	}
}

// TestAttentionGradient: the gradient to a probability is that of a function of what the heads gather,
// by finite differences of the probability itself.
func TestAttentionGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := Attention{H: 2, L: 3, T: 4, D: 6}
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	a.Queries, a.KeyValues, a.Grad = fill(a.L*a.D), fill(a.T*2*a.D), fill(a.L*a.D)
	got := a.Relevance()
	e := a.D / a.H
	for l := range a.L {
		want := make([]float64, a.T)
		for h := range a.H {
			p, sum := make([]float64, a.T), 0.0
			for k := range a.T {
				for c := range e {
					p[k] += float64(a.Queries[l*a.D+h*e+c]) * float64(a.KeyValues[k*2*a.D+h*e+c])
				}
				p[k] = math.Exp(p[k] / math.Sqrt(float64(e)))
				sum += p[k]
			}
			// The score is linear in what a head gathers, o = sum_k p_k v_k, with the gradient a.Grad.
			score := func() (s float64) {
				for k := range a.T {
					for c := range e {
						s += p[k] / sum * float64(a.KeyValues[k*2*a.D+a.D+h*e+c]) * float64(a.Grad[l*a.D+h*e+c])
					}
				}
				return s
			}
			for k := range a.T {
				const step = 1e-4
				was := p[k]
				p[k] = was + step*sum
				up := score()
				p[k] = was - step*sum
				down := score()
				p[k] = was
				want[k] += was / sum * max((up-down)/(2*step), 0) / float64(a.H)
			}
		}
		for k, w := range want {
			if !(math.Abs(got[l*a.T+k]-w) <= 1e-6) {
				t.Errorf("place %d, token %d: %v, want %v", l, k, got[l*a.T+k], w)
			}
		}
	}
}
