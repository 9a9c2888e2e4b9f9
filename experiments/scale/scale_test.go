package main

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// step is an easy one: 1 s and 10 ms a row, 100 MB in buckets of 50, a link of 100 MB/s.
var step = Step{Fixed: 1, PerRow: .01, Back: .5, Gradients: 100e6, Bucket: 50e6, Features: 1e3, Link: Link{Latency: 1e-3, Bandwidth: 100e6}}

// TestSecondsByHand: two ranks of 100 rows. Each bucket takes 2 (1 ms + 25 MB / 100 MB/s) = 502 ms. The
// backward pass of .5 s completes them after .25 and .5 s, so they end after .752 and 1.254 s, .754 s
// behind it. Features take 2 (1 ms + 1 ms).
func TestSecondsByHand(t *testing.T) {
	got, exposed := step.Seconds(2, 100)
	if want := 1 + 1 + .004 + .754; !(math.Abs(got-want) <= 1e-9) || !(math.Abs(exposed-.754) <= 1e-9) {
		t.Errorf("got %v and %v, want %v and 0.754", got, exposed, want)
	}
	if got, exposed := step.Seconds(1, 100); got != 2 || exposed != 0 {
		t.Errorf("alone %v and %v, want 2 and 0", got, exposed)
	}
	fast := step
	fast.Bandwidth, fast.Latency = 1e12, 0
	if e := fast.Efficiency(4, 100, true); !(math.Abs(e-1) <= 1e-3) {
		t.Errorf("weak efficiency %v of a link that takes no time, want 1", e)
	}
	if e := fast.Efficiency(4, 100, false); math.Abs(e-2./4/1.25) > 1e-3 { // 1 s do not get less
		t.Errorf("strong efficiency %v, want %v", e, 2./4/1.25)
	}
}

// TestFit finds the numbers that measurements were made from.
func TestFit(t *testing.T) {
	m := Measured{Batch: 100, Gradient: 100, Bucket: 50, Feature: 1e3, Back: .5, Compute: []Point{{X: 50, MS: 1500}, {X: 100, MS: 2000}}}
	l := Line{Name: "link", Ranks: 3}
	for _, mb := range []float64{1, 10, 100} {
		l.Sums = append(l.Sums, Point{mb, 1e3 * step.Sum(3, 1e6*mb)})
	}
	l.Steps = append(l.Steps, struct {
		Ranks, Rows int
		MS          float64
	}{2, 100, 1e3 * (2 + .004 + .754 + .25*(.004+2*.502))}) // see above, and a quarter of X
	m.Links = []Line{l}
	fits, err := m.fit()
	if err != nil {
		t.Fatal(err)
	}
	got := fits[0]
	for _, x := range [][2]float64{{got.Fixed, step.Fixed}, {got.PerRow, step.PerRow}, {got.Latency, step.Latency},
		{got.Bandwidth, step.Bandwidth}, {got.Work, .25}} {
		if !(math.Abs(x[0]-x[1]) <= 1e-6*x[1]) {
			t.Errorf("fitted %+v, want %+v", got, step)
			break
		}
	}
	var b bytes.Buffer
	report(&b, m, fits)
	if !strings.Contains(b.String(), "0.8 Gbit/s, 1000 us a message") {
		t.Errorf("the report says %s", &b)
	}
	if err := draw(filepath.Join(t.TempDir(), "scale.svg"), m, fits); err != nil {
		t.Error(err)
	}
}
