package optim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestPull compares what moves a learned metric besides its gradient with the formulas in float64, in an update
// and in one with twins, over weights of several chunks.
func TestPull(t *testing.T) {
	const side, before, after = 130, 21, 17 // blocks do not end with chunks
	const n = before + 2*side*side + after
	for name, p := range map[string]Pull{
		"to zero":     {Decay: 0.3, Side: side},
		"to identity": {Decay: 0.3, Identity: true, Side: side},
		"sparse":      {L1: 0.4, Side: side},
		"both":        {Decay: 0.3, Identity: true, L1: 0.4, Side: side},
		"diagonal":    {Decay: 0.3, Identity: true, Side: 1},
	} {
		for _, twins := range []bool{false, true} {
			r := rand.New(rand.NewPCG(7, 8))
			params, grads := make([]float32, n), make([]float32, n)
			want, m, v := make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range params {
				params[i] = float32(0.05 * r.NormFloat64())
				want[i] = float64(params[i])
			}
			segs := []Segment{{Name: "before", Len: before, Decay: true},
				{Name: "w", Offset: before, Len: 2 * side * side, Pull: p}, {Name: "after", Offset: n - after, Len: after}}
			o := check.Get(New(engine(t, 2), params, grads, segs, hyper))(t)
			twin := make([]float32, n-10)
			check.OK(t, o.SetTwins([]Twin{{Offset: 5, Values: twin}}))
			const lr = 0.02
			zeros := 0
			for step := 1; step <= 3; step++ {
				for i := range grads {
					grads[i] = float32(r.NormFloat64())
				}
				old := append([]float32(nil), twin...)
				if norm := o.GradNorm(1); twins {
					o.StepTwins(lr, 1, norm, 0.9)
				} else {
					o.Step(lr, 1, norm)
				}
				for i := range want {
					switch k := i - before; {
					case k < 0:
						naiveStep(&want[i], &m[i], &v[i], float64(grads[i]), lr, 1, hyper.Decay, step)
					case i >= n-after:
						naiveStep(&want[i], &m[i], &v[i], float64(grads[i]), lr, 1, 0, step)
					default:
						k %= p.Side * p.Side
						diagonal, to := k/p.Side == k%p.Side, 0.
						if diagonal && p.Identity {
							to = 1
						}
						decay := lr * p.Decay * (want[i] - to)
						naiveStep(&want[i], &m[i], &v[i], float64(grads[i]), lr, 1, 0, step)
						if want[i] -= decay; !diagonal {
							want[i] = math.Copysign(math.Max(math.Abs(want[i])-lr*p.L1, 0), want[i])
						}
						if step == 3 && want[i] == 0 {
							zeros++
						}
					}
					if d := math.Abs(float64(params[i]) - want[i]); d > 1e-5 {
						t.Fatalf("%s, twins %t, step %d, element %d: got %v, want %v", name, twins, step, i, params[i],
							want[i])
					}
					if k := i - 5; twins && k >= 0 && k < len(twin) {
						if w := 0.9*float64(old[k]) + 0.1*float64(params[i]); !(math.Abs(float64(twin[k])-w) <= 1e-6) {
							t.Fatalf("%s, step %d, twin %d: got %v, want %v", name, step, k, twin[k], w)
						}
					}
				}
			}
			if (p.L1 > 0) != (zeros > 100) {
				t.Errorf("%s: %d weights are 0", name, zeros)
			}
		}
	}
}

func TestPullErrors(t *testing.T) {
	for _, p := range []Pull{{L1: 1}, {L1: 1, Side: 3}} {
		if _, err := New(engine(t, 1), make([]float32, 8), make([]float32, 8), []Segment{{Name: "w", Len: 8, Pull: p}},
			hyper); err == nil || !strings.Contains(err.Error(), "8 weights are no blocks") {
			t.Errorf("%+v: got %v", p, err)
		}
	}
}
