package align

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// lumps are rows around centres of unlike sizes: a shape that is like no rotation of itself.
func lumps(seed uint64, n, d int) Table {
	out, centres := gauss(seed, n, d), gauss(seed+1, 6, d)
	for i := range n {
		for k := range d {
			c := min(5, i%21/3)
			out.Data[i*d+k] = .5*out.Data[i*d+k] + float32(c)*.6*centres.Data[c*d+k]
		}
	}
	return out
}

// TestWasserstein finds a rotation, and the order of shuffled rows, without a pair.
func TestWasserstein(t *testing.T) {
	e := engine(t)
	const n, d = 120, 6
	x := lumps(1, n, d)
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	y := times(x, rotation(3, d), 2)
	shuffled := Table{make([]float32, n*d), d}
	for i, j := range order {
		copy(shuffled.Data[j*d:][:d], y.Data[i*d:][:d])
	}
	m, found := check.Get2(Wasserstein{Restarts: 2}.FitUnpaired(e, x, shuffled))(t)
	for i, j := range order {
		if int(found.Texts[i]) != j {
			t.Fatalf("row %d is matched with %d, want %d", i, found.Texts[i], j)
		}
	}
	if !(found.Objective > .99) || !(found.Agreement > .4) {
		t.Errorf("objective %v, agreement %v", found.Objective, found.Agreement)
	}
	s := scores(t, e, m, x.Data, y.Data)
	for i := range n {
		near(t, "cosine", s[i*n+i:][:1], []float64{1}, 1e-4)
	}
}

// TestWassersteinSeed gives the same map for the same seed.
func TestWassersteinSeed(t *testing.T) {
	e := engine(t)
	x, y := gauss(1, 30, 4), gauss(2, 25, 3)
	var first []float32
	for range 2 {
		m, found := check.Get2(Wasserstein{Restarts: 1, Seed: 3}.FitUnpaired(e, x, y))(t)
		if len(found.Texts) != 30 || m.Width() != 3 {
			t.Fatalf("%d matches, width %d", len(found.Texts), m.Width())
		}
		w, _ := m.Layer(Image)
		if first == nil {
			first = w
		}
		near(t, "weight", widen(w), widen(first), 0)
	}
}

func TestWassersteinErrors(t *testing.T) {
	e := engine(t)
	good, nan := gauss(1, 30, 4), gauss(1, 30, 4)
	nan.Data[4*9+1] = float32(math.NaN())
	_, _, err := Wasserstein{}.FitUnpaired(e, good, nan)
	wantError(t, err, "row 9 of the texts", "column 1")
	_, _, err = Wasserstein{}.FitUnpaired(e, good, gauss(1, 2, 4))
	wantError(t, err, "at least 3 rows of the texts")
	_, _, err = Wasserstein{Rows: -1}.FitUnpaired(e, good, good)
	wantError(t, err, "Rows", "-1")
	_, _, err = Wasserstein{Prepare: Prepare{KeepMean: true}, Rows: 1}.FitUnpaired(e, good, good)
	wantError(t, err, "Wasserstein.Rows must be at least 2", "got 1")
	if _, _, err = (Wasserstein{Rows: 2}).FitUnpaired(e, good, good); err != nil {
		t.Error(err)
	}
	_, _, err = Wasserstein{}.FitUnpaired(e, good, Table{Data: make([]float32, 5)})
	wantError(t, err, "rows of the texts have width 0")
}
