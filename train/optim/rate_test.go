package optim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// naiveStep is an update of one element in float64, with the rate of its segment.
func naiveStep(p, m, v *float64, g, lr, rate, decay float64, t int) {
	lr *= rate
	*p -= lr * decay * *p
	*m = hyper.Beta1**m + (1-hyper.Beta1)*g
	*v = hyper.Beta2**v + (1-hyper.Beta2)*g*g
	*p -= lr / (1 - math.Pow(hyper.Beta1, float64(t))) * *m / (math.Sqrt(*v/(1-math.Pow(hyper.Beta2, float64(t)))) +
		hyper.Eps)
}

// Every segment moves by its own share of the learning rate, in an update and in one with twins.
func TestRates(t *testing.T) {
	const n = 2*chunkLen + 61
	rates := []float64{0.25, 0, 0.7}
	for _, twins := range []bool{false, true} {
		params, grads, segs := randomSlabs(n)
		for i := range segs {
			segs[i].Rate, segs[i].Decay = rates[i], true // neighbours differ by the rate alone
		}
		o := check.Get(New(engine(t, 2), params, grads, segs, hyper))(t)
		check.OK(t, o.SetTwins([]Twin{{Offset: 5, Values: make([]float32, n-50)}}))
		want, m, v := make([]float64, n), make([]float64, n), make([]float64, n)
		for i, p := range params {
			want[i] = float64(p)
		}
		r := rand.New(rand.NewPCG(5, 6))
		for step := 1; step <= 4; step++ {
			for i := range grads {
				grads[i] = float32(r.NormFloat64())
			}
			const lr = 0.01
			if norm := o.GradNorm(1); twins {
				o.StepTwins(lr, 1, norm, 0.9)
			} else {
				o.Step(lr, 1, norm)
			}
			for _, s := range segs {
				rate, decay := s.Rate, 0.
				if rate == 0 {
					rate = 1
				}
				if s.Decay {
					decay = hyper.Decay
				}
				for i := s.Offset; i < s.Offset+s.Len; i++ {
					naiveStep(&want[i], &m[i], &v[i], float64(grads[i]), lr, rate, decay, step)
				}
			}
		}
		for i, p := range params {
			if !(math.Abs(float64(p)-want[i]) <= 2e-6*math.Max(1, math.Abs(want[i]))) {
				t.Fatalf("twins %t: element %d is %v, want %v", twins, i, p, want[i])
			}
		}
	}
}

func TestRatesRefused(t *testing.T) {
	params, grads, segs := randomSlabs(100)
	segs[1].Rate = -1
	if _, err := New(engine(t, 1), params, grads, segs, hyper); err == nil ||
		!strings.Contains(err.Error(), "a/bias: the rate is a finite number >= 0 (got -1)") {
		t.Errorf("got %v", err)
	}
}
