package sanity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// noisy are n losses around a line from a to b.
func noisy(seed uint64, n int, a, b, noise float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = a + (b-a)*float64(i)/float64(n-1) + noise*r.NormFloat64()
	}
	return x
}

func TestLoss(t *testing.T) {
	exponential := noisy(4, 100, 0, 0, 0.02)
	for i := range exponential {
		exponential[i] += 1 + 3*math.Exp(-float64(i)) // learned at once, flat since
	}
	for name, c := range map[string]struct {
		losses []float64
		want   string // empty: nothing is told
	}{
		"a loss that falls":                            {noisy(1, 50, 4.8, 2, 0.2), ""},
		"of heads, which learn within the first third": {[]float64{4.76, 4.12, 1.78, 0.56, 0.28, 0.12, 0.11, 0.072, 0.048, 0.042, 0.034, 0.030, 0.025, 0.026, 0.022, 0.029, 0.023, 0.020, 0.019, 0.028, 0.027}, ""},
		"a little":                             {noisy(2, 200, 4.85, 4.75, 0.05), ""},
		"at the first steps alone":             {exponential, ""},
		"a part that joins doubles the sum":    {noisy(3, 50, 4, 8, 0.1), ""},
		"diverged at a rate of 100":            {[]float64{4.8, 9, 120, 5000, 68736}, "the loss diverged: it began at 4.8 and ended at 6.874e+04"},
		"not a number":                         {[]float64{4.8, math.NaN()}, "the loss diverged"},
		"flat to its noise":                    {noisy(5, 60, 4.85, 4.85, 0.03), "has not moved beyond its noise"},
		"constant":                             {noisy(6, 40, 4.85, 4.85, 0), "has not moved beyond its noise"},
		"flat, of few rows, which tell little": {noisy(7, 9, 4.85, 4.85, 0.03), ""},
		"one row":                              {[]float64{3}, ""},
		"a negative loss that falls":           {noisy(8, 40, -1, -3, 0.1), ""},
	} {
		if got := Loss(c.losses); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLossOfShippedSystems: none of the golden curves of the shipped systems diverged, of which ten steps say no more.
func TestLossOfShippedSystems(t *testing.T) {
	files, err := filepath.Glob("../../cmd/trainer/testdata/curves/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d curves, %v", len(files), err)
	}
	for _, file := range files {
		text := check.Get(os.ReadFile(file))(t)
		var curve struct{ Steps []map[string]float64 }
		check.OK(t, json.Unmarshal(text, &curve))
		var losses []float64
		for _, s := range curve.Steps {
			losses = append(losses, s["loss"])
		}
		if got := Loss(losses); strings.Contains(got, "diverged") || len(losses) == 0 {
			t.Errorf("%s: %d losses: %s", file, len(losses), got)
		}
	}
}

func TestShares(t *testing.T) {
	r1 := func(v, chance float64, n int) Share { return Share{"R@1", v, chance, n} }
	for _, c := range []struct {
		got, want string
	}{
		{AtChance("x", r1(0.1, 0.1, 1000)), "x is not above chance: R@1 0.1 % (95 % interval 0.0 to 0.6, chance 0.1)"},
		{AtChance("x", r1(1, 0.1, 1000)), ""},                    // ten hits where one is expected
		{AtChance("x", r1(0, 0, 10)), "x is not above chance"},   // no hit
		{AtChance("x", r1(10, 0, 10)), ""},                       // any hit is above none
		{AtChance("x", r1(100, 100, 10)), ""},                    // whatever is answered is right
		{AtChance("x", r1(0.1, 0.1, 1000), r1(30, 1, 1000)), ""}, // one share that is above is enough
		{AtChance("x", r1(62.5, 6.25, 16)), ""},                  // few, and far above
		{AtChance("x", r1(12.5, 6.25, 16)), "x is not above"},    // two of 16
		{Few(r1(62.5, 6.25, 16), "images"), "16 images: one is 6.2 points; R@1 62.5 % has a 95 % interval of 38.6 to 81.5"},
		{Few(r1(62.5, 6.25, 100), "images"), ""},
		{Collapsed("images", 0.9995, 10), "the features of the images are nearly one point: the mean cosine of two of them is 0.99950"},
		{Collapsed("images", 0.9, 10), ""},
		{Ties(40, 41.3), "scores tie: the mean of recalls is 40.0 where ties count against the model and 41.3"},
		{Ties(40, 40.01), ""},
		{Column("a.npy", 3, 16, 1, 1e15), "column 3 of a.npy has 100 % of the variance of all 16 (values up to 1e+15)"},
		{Column("a.npy", 0, 16, 0.6, 3), ""},
		{Column("a.npy", 0, 1, 1, 3), ""}, // there is no other
	} {
		if (c.got == "") != (c.want == "") || !strings.Contains(c.got, c.want) {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestFalseAlarms: of guesses that are made at random a share is told from chance in about chanceP of the evaluations,
// and of a model that is right three times as often as chance nearly never taken for one.
func TestFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	const trials, n = 2000, 500
	above := map[float64]int{}
	for _, p := range []float64{0.02, 0.06} {
		for range trials {
			hits := 0
			for range n {
				if r.Float64() < p {
					hits++
				}
			}
			if AtChance("x", Share{"R@10", 100 * float64(hits) / n, 2, n}) == "" {
				above[p]++
			}
		}
	}
	if above[0.02] > trials/50 || above[0.06] < trials*98/100 {
		t.Errorf("of %d evaluations %d at chance and %d at three times chance are told from chance", trials,
			above[0.02], above[0.06])
	}
}

// TestMeanCosine compares with all pairs.
func TestMeanCosine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n, d = 20, 5
	x := make([]float32, n*d)
	for i := range x {
		x[i] = float32(r.NormFloat64()) + 1
	}
	clear(x[3*d : 4*d]) // a row without a direction
	sum, pairs := 0.0, 0
	for i := range n {
		for j := range n {
			if i == j || i == 3 || j == 3 {
				continue
			}
			var xy, xx, yy float64
			for k := range d {
				a, b := float64(x[i*d+k]), float64(x[j*d+k])
				xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
			}
			sum, pairs = sum+xy/math.Sqrt(xx*yy), pairs+1
		}
	}
	got, rows := MeanCosine(x, d)
	if math.Abs(got-sum/float64(pairs)) > 1e-9 || rows != n-1 {
		t.Errorf("%v of %d rows, want %v", got, rows, sum/float64(pairs))
	}
}
