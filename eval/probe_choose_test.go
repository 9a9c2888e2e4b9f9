package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestChooseDecay compares the search with fits made one by one on rows that are divided by hand.
func TestChooseDecay(t *testing.T) {
	e, r := probeEngine(t), rand.New(rand.NewPCG(9, 1))
	x, labels := blobs(r, 120, 100, 3, 1.8) // more noise than a probe without decay copes with
	told := 0
	c, err := ChooseDecay(t.Context(), e, x, labels, 3, .25, func(done, total int) { told = max(told, done*100/total) })
	if err != nil {
		t.Fatal(err)
	}
	train, held := holdRows(labels, .25)
	if len(held) != 30 || len(train) != 90 {
		t.Fatalf("%d held and %d to fit to", len(held), len(train))
	}
	fitX, fitY := rowsAt(x, labels, 100, train)
	testX, testY := rowsAt(x, labels, 100, held)
	best, values := math.Inf(-1), map[float64]bool{}
	for _, tried := range c.Tried {
		p := check.Get(FitProbe(t.Context(), e, fitX, fitY, ProbeOptions{Classes: 3, Decay: tried.Decay}))(t)
		got := check.Get(p.Predict(testX, len(testY)))(t)
		if a := Accuracy(got, testY); a != tried.Top1 {
			t.Errorf("decay %g: %v, want %v", tried.Decay, tried.Top1, a)
		}
		best, values[tried.Top1] = max(best, tried.Top1), true
	}
	if c.Top1 != best || len(values) < 3 || told != 100 {
		t.Errorf("chose %+v, the best has %v; %d values; told %d", c, best, len(values), told)
	}
	for _, tried := range c.Tried {
		if tried.Top1 == best && tried.Decay > c.Decay {
			t.Errorf("%g is as good as %g and larger", tried.Decay, c.Decay)
		}
	}
	apart, of := blobs(r, 60, 8, 3, .1) // which every decay tells
	if c, err := ChooseDecay(t.Context(), e, apart, of, 3, .25, nil); err != nil || c.Top1 != 100 || c.Decay != 10 {
		t.Errorf("of decays that are all right %+v is chosen (%v)", c, err)
	}
	// Five powers of ten from 1e-7 to 10, then the neighbours of the best at 1, 1/2, 1/4 and 1/8 of a power.
	first := []float64{1e-7, 1e-5, 1e-3, 1e-1, 1e1}
	for i, want := range first {
		if !(math.Abs(c.Tried[i].Decay/want-1) <= 1e-9) {
			t.Errorf("fit %d has decay %g, want %g", i, c.Tried[i].Decay, want)
		}
	}
	if n := len(c.Tried); n < 9 || n > 13 {
		t.Errorf("%d fits", n)
	}
	for _, c := range []struct {
		hold float64
		want string
	}{{.001, "leaves 120 to fit to and 0"}, {1, "leaves 0 to fit to and 120"}} {
		if _, err := ChooseDecay(t.Context(), e, x, labels, 3, c.hold, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v", err)
		}
	}
	if _, err := ChooseDecay(t.Context(), e, x, []int32{0}, 0, .5, nil); err == nil {
		t.Error("labels that do not fit pass")
	}
}

// TestHoldRows: the held rows are a share of every class, however the file is sorted.
func TestHoldRows(t *testing.T) {
	sorted, alternating := make([]int32, 100), make([]int32, 100)
	for i := range sorted {
		sorted[i], alternating[i] = int32(i/50), int32(i%2)
	}
	for name, labels := range map[string][]int32{"sorted": sorted, "alternating": alternating} {
		train, held := holdRows(labels, .1)
		count := [2]int{}
		for _, i := range held {
			count[labels[i]]++
		}
		all := slices.Concat(train, held)
		slices.Sort(all)
		if count != [2]int{5, 5} || len(slices.Compact(all)) != 100 {
			t.Errorf("%s: %v", name, count)
		}
	}
}
