package align

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestLikeness: copies are nearly the same, rows that have nothing to do with each other are
// unlike, and with more of the rows out of step spaces are less alike.
func TestLikeness(t *testing.T) {
	e := engine(t)
	x := gauss(1, 400, 16)
	copied := times(x, rotation(2, 16), 1)
	y := gauss(3, 400, 16)
	mixed := func(own float32) Rows { // copies with as much noise as is left
		z := append([]float32(nil), y.Data...)
		for i := range z {
			z[i] = own*copied.Data[i] + (1-own)*z[i]
		}
		return Table{z, 16}
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		text Rows
		want Likeness
	}{{copied, NearlySame}, {mixed(.4), Alike}, {mixed(.2), WeaklyAlike}, {y, Unlike}} {
		a := check.Get(Forecast(e, Pairs{x, c.text}, ForecastOptions{}))(t)
		if got := a.Likeness(); got != c.want {
			t.Errorf("%+v is %s, want %s", a, got, c.want)
		}
		if s := a.Advice(); seen[s] {
			t.Errorf("%s has the advice of another class: %s", c.want, s)
		} else {
			seen[s] = true
		}
	}
}

// TestForecastError: the error of the CKA is how far it scatters from draw to draw, and what is within it of a limit is
// said.
func TestForecastError(t *testing.T) {
	e := engine(t)
	turn := rotation(2, 8)
	draw := func(seed uint64, own float32) Pairs {
		x, y := gauss(2*seed, 120, 8), gauss(2*seed+1, 120, 8)
		z := times(x, turn, 1)
		for i := range z.Data {
			z.Data[i] = own*z.Data[i] + (1-own)*y.Data[i]
		}
		return Pairs{x, z}
	}
	const draws = 40
	var sum, squares, said float64
	for seed := range uint64(draws) {
		a := check.Get(Forecast(e, draw(seed+10, .5), ForecastOptions{Permutations: LeastPermutations}))(t)
		sum, squares, said = sum+a.CKA.Value, squares+a.CKA.Value*a.CKA.Value, said+a.CKAError/draws
		if near := math.Abs(a.CKA.Value-nearlyFrom) < 2*a.CKAError; near != strings.Contains(a.Advice(),
			"within two standard errors") {
			t.Errorf("CKA %.3f, error %.3f: %s", a.CKA.Value, a.CKAError, a.Advice())
		}
	}
	scatter := math.Sqrt((squares - sum*sum/draws) / (draws - 1))
	t.Logf("CKA %.3f scatters by %.4f, the error is %.4f", sum/draws, scatter, said)
	if said < scatter/1.5 || said > 1.5*scatter {
		t.Errorf("the error is %.4f, the scatter %.4f", said, scatter)
	}
	x := gauss(1, 100, 8)
	few := check.Get(Forecast(e, Pairs{x, x}, ForecastOptions{Permutations: 2}))(t)
	if few.Likeness() != Undecided || !strings.Contains(few.Advice(), "With 2 shuffles") {
		t.Errorf("two shuffles of a file with itself: %s: %s", few.Likeness(), few.Advice())
	}
}
