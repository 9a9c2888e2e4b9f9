package align

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestPlanKL settles the gradient by finite differences, with a target of another eps.
func TestPlanKL(t *testing.T) {
	e := engine(t)
	const n, m = 5, 4
	tight := PlanOptions{Epsilon: .2, Iterations: 100000, Tolerance: 1e-14}
	target := check.Get(NewPlan(e, widen(gauss(1, n, m).Data), n, m,
		PlanOptions{Epsilon: .7, Iterations: 100000, Tolerance: 1e-14}))(t)
	want := masses(target)
	s := widen(gauss(2, n, m).Data)
	at := func() *Plan {
		return check.Get(NewPlan(e, append([]float64(nil), s...), n, m, tight))(t)
	}
	kl, grad := check.Get2(PlanKL(at(), want))(t)
	var direct float64
	for i, v := range masses(at()) {
		direct += want[i] * math.Log(want[i]/v)
	}
	near(t, "kl", []float64{kl}, []float64{direct}, 1e-9)
	const h = 1e-5
	for i := range s {
		v := s[i]
		s[i] = v + h
		above, _, _ := PlanKL(at(), want)
		s[i] = v - h
		below, _, _ := PlanKL(at(), want)
		s[i] = v
		near(t, "gradient", grad[i:i+1], []float64{(above - below) / (2 * h)}, 1e-6)
	}
	_, _, err := PlanKL(at(), want[1:])
	wantError(t, err, "19 values", "5 x 4")
	want[3] = -1
	_, _, err = PlanKL(at(), want)
	wantError(t, err, "-1 at 0, 3", ">= 0")
}

// TestPlanSums holds masses at an eps that would underflow without logarithms.
func TestPlanSums(t *testing.T) {
	e := engine(t)
	s := widen(gauss(1, 6, 6).Data)
	p := check.Get(NewPlan(e, s, 6, 6, PlanOptions{Epsilon: 1e-3, Iterations: 20000}))(t)
	matrix := masses(p)
	for i := range 6 {
		var row, column float64
		for j := range 6 {
			row += matrix[i*6+j]
			column += matrix[j*6+i]
		}
		near(t, "masses", []float64{row, column}, []float64{1. / 6, 1. / 6}, 1e-5)
	}
}

func TestPlanErrors(t *testing.T) {
	e := engine(t)
	_, err := NewPlan(e, []float64{1, 2, 3}, 2, 2, PlanOptions{Epsilon: 1})
	wantError(t, err, "2 x 2", "got 3")
	_, err = NewPlan(e, []float64{1, 2, math.NaN(), 3}, 2, 2, PlanOptions{Epsilon: 1})
	wantError(t, err, "items 1 and 0 is NaN")
	_, err = NewPlan(e, []float64{1, 2, 2, 3}, 2, 2, PlanOptions{})
	wantError(t, err, "eps > 0")
}
