package align

import "testing"

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
		a, err := Forecast(e, Pairs{x, c.text}, ForecastOptions{})
		if err != nil {
			t.Fatal(err)
		}
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
