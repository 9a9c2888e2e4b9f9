package align

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/geoalign/geoalign/internal/check"
)

// noisyPairs are pairs that share 4 directions of 12.
func noisyPairs(seed uint64, n int) Pairs {
	z := gauss(seed, n, 4)
	mix := func(s uint64) Table {
		out := times(z, mat.NewDense(4, 12, widen(gauss(s, 4, 12).Data)), 0)
		for i, v := range gauss(s+seed, n, 12).Data {
			out.Data[i] += v
		}
		return out
	}
	return Pairs{mix(100), mix(200)}
}

// TestChoose takes the method that ranks held-out pairs best, by a score that a loop over the
// same folds gives too.
func TestChoose(t *testing.T) {
	e := engine(t)
	p := noisyPairs(1, 60)
	methods := []Method{CCA{Lambda: 1e4, Power: 8}, CCA{}, ASIF{}, Ridge{}}
	best, scores := check.Get2(Choose(e, p, methods, 3, 5))(t)
	for i, s := range scores {
		if !(s > 0 && s <= 1) || s > scores[best] {
			t.Errorf("score %d is %v, the best is %d of %v", i, s, best, scores)
		}
	}
	for i, m := range methods { // alone, as with others
		_, alone := check.Get2(Choose(e, p, []Method{m}, 3, 5))(t)
		near(t, "score", alone, scores[i:i+1], 1e-6)
	}
	if chance := 0.18; scores[1] < 2*chance { // harmonic mean rank of 20
		t.Errorf("CCA scores %v", scores[1])
	}
	_, _, err := Choose(e, p.Select([]int32{1, 2, 3, 4, 5}), methods, 3, 5)
	wantError(t, err, "at least 6 pairs (got 5)")
	_, _, err = Choose(e, p, methods, 1, 5)
	wantError(t, err, "at least 2 folds")
}

// TestLeaveOneOut compares the penalty with that of fits without each pair in turn.
func TestLeaveOneOut(t *testing.T) {
	e := engine(t)
	p := noisyPairs(2, 24)
	prepare := Prepare{KeepLength: true}
	m := check.Get(Measure(e, p, prepare))(t)
	got := check.Get(leaveOneOut(e, p, m, Text))(t)
	images, texts := p.Image.(Table), p.Text.(Table)
	best, least := 0., -1.
	for _, lambda := range Lambdas {
		lambda *= m.scale(Text)
		var sum float64
		for out := range int32(24) {
			var rest []int32
			for i := range int32(24) {
				if i != out {
					rest = append(rest, i)
				}
			}
			part := check.Get(Measure(e, p.Select(rest), prepare))(t)
			s := check.Get(part.spectrum(Text))(t)
			w := s.ridgeInverse(lambda*24/23, part.cross(Text)) // the same penalty of sums
			for j := range 12 {
				y := part.Mean[Image][j] - float64(images.Data[out*12+int32(j)])
				for k := range 12 {
					y += (float64(texts.Data[out*12+int32(k)]) - part.Mean[Text][k]) * w.At(k, j)
				}
				sum += y * y
			}
		}
		if least < 0 || sum < least {
			best, least = lambda, sum
		}
	}
	near(t, "penalty", []float64{got}, []float64{best}, 1e-12)
	if best == Lambdas[0]*m.scale(Text) || best == Lambdas[len(Lambdas)-1]*m.scale(Text) {
		t.Fatal("the best penalty lies at an end of the list: it proves little")
	}
}

// TestChooseLeavesOut scores pairs that share nothing at chance: a method that has seen the
// pairs that it ranks would know them.
func TestChooseLeavesOut(t *testing.T) {
	e := engine(t)
	_, scores := check.Get2(Choose(e, Pairs{gauss(1, 80, 6), gauss(2, 80, 6)}, []Method{ASIF{K: 3}}, 2, 1))(t)
	if scores[0] > .2 { // the harmonic mean rank among 40 is 1/0.107
		t.Errorf("score %v", scores[0])
	}
}
