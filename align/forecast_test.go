package align

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestForecast is at its top for a rotated copy, at its null level for unlike rows.
func TestForecast(t *testing.T) {
	e := engine(t)
	x := gauss(1, 200, 6)
	same := check.Get(Forecast(e, Pairs{x, times(x, rotation(2, 6), 1)}, ForecastOptions{Permutations: 50}))(t)
	if !(same.Mutual.Value > .999) || !(math.Abs(same.CKA.Value-1) <= 1e-4) || !(same.Agreement.Value > .97) {
		t.Errorf("a copy: %+v", same)
	}
	for name, l := range map[string]Level{"mutual": same.Mutual, "cka": same.CKA, "agreement": same.Agreement} {
		if l.P != 1./51 || l.Value < l.Null+10*l.Deviation {
			t.Errorf("a copy: %s %+v", name, l)
		}
	}
	near(t, "null levels", []float64{same.Mutual.Null, same.CKA.Null, same.Agreement.Null}, []float64{10. / 199, 0, .5},
		.01)

	unlike := check.Get(Forecast(e, Pairs{x, gauss(3, 200, 5)}, ForecastOptions{Permutations: 50}))(t)
	for name, l := range map[string]Level{"mutual": unlike.Mutual, "cka": unlike.CKA, "agreement": unlike.Agreement} {
		if !(math.Abs(l.Value-l.Null) <= 5*l.Deviation) {
			t.Errorf("unlike rows: %s %+v", name, l)
		}
	}
}

// TestForecastTies: rows that are equal in either space, of six each that know nothing of each other, are no more alike
// than shuffled ones.
func TestForecastTies(t *testing.T) {
	e := engine(t)
	const n, kinds, d = 300, 6, 8
	random := rand.New(rand.NewPCG(1, 2))
	of := func(seed uint64) Table {
		from, x := gauss(seed, kinds, d), Table{D: d}
		for range n {
			k := random.IntN(kinds)
			x.Data = append(x.Data, from.Data[k*d:][:d]...)
		}
		return x
	}
	p := Pairs{of(1), of(2)}
	for seed := range uint64(3) {
		a := check.Get(Forecast(e, p, ForecastOptions{Seed: seed}))(t)
		for name, l := range map[string]Level{"mutual": a.Mutual, "cka": a.CKA, "agreement": a.Agreement} {
			if !(math.Abs(l.Value-l.Null) <= 4*l.Deviation) {
				t.Errorf("seed %d: %s %+v", seed, name, l)
			}
		}
		if a.Likeness() != Unlike {
			t.Errorf("seed %d: %s", seed, a.Likeness())
		}
	}
}

// TestForecastRows looks at evenly spaced pairs alone.
func TestForecastRows(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 100, 6), gauss(2, 100, 5)}
	few := check.Get(Forecast(e, p, ForecastOptions{Rows: 20, K: 3, Permutations: 3}))(t)
	want := check.Get(Forecast(e, p.Select(spread(100, 20)), ForecastOptions{K: 3, Permutations: 3}))(t)
	if *few != *want || few.Pairs != 20 {
		t.Errorf("got %+v, want %+v", few, want)
	}
}

func TestForecastErrors(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 9, 6), gauss(2, 9, 5)}
	_, err := Forecast(e, p, ForecastOptions{K: 8})
	wantError(t, err, "at most 7, for 9 pairs (got 8)")
	_, err = Forecast(e, p, ForecastOptions{K: -1})
	wantError(t, err, ">= 0", "-1")
	_, err = Forecast(e, Pairs{gauss(1, 3, 2), gauss(2, 3, 2)}, ForecastOptions{})
	wantError(t, err, "at least 4 pairs (got 3)")
	_, err = Forecast(e, Pairs{Table{make([]float32, 54), 6}, gauss(2, 9, 5)}, ForecastOptions{})
	wantError(t, err, "9 rows of the images", "rows that differ")
}
